package rawtrace_test

import (
	"log"

	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/decoder"
	"wpptrace/internal/record/rawtrace"
	"wpptrace/loader/plan"
)

// Write what a thread runs to a raw trace too.
func Example() {
	var p *plan.Plan // of the program
	d, err := decoder.New(p, nil)
	if err != nil {
		log.Fatal(err)
	}
	trace, err := rawtrace.Create("program.raw", p, d)
	if err != nil {
		log.Fatal(err)
	}
	defer trace.Abandon()
	if err := trace.Place(); err != nil {
		log.Fatal(err)
	}
	var compressed ops.Sink
	d.Thread(trace.Besides(compressed, raw.Thread{TID: 1234, Name: "program"}), true)
	if err := trace.End(); err != nil {
		log.Fatal(err)
	}
}
