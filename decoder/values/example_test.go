package values_test

import (
	"log"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/decoder/code"
	"wpptrace/decoder/values"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
)

// Record values beside the paths of a thread.
func Example() {
	var program *plan.Plan // of a program
	var batches []wire.Batch
	var paths ops.Sink
	var alphabet *ops.Symbols // of the paths
	reads, err := loads.Make(program, loads.Options{})
	if err != nil {
		log.Fatal(err)
	}
	d, err := decoder.New(program, nil)
	if err != nil {
		log.Fatal(err)
	}
	recorder := values.New(reads, code.Of(program, nil), d, alphabet, nil)
	thread := recorder.Thread(1234, 0, paths)
	decoded := d.Thread(thread, true)
	for _, b := range batches {
		if b.HasStates() {
			recorder.Take(b)
			continue
		}
		for i := range b.Len() {
			decoded.Take(b.Event(i))
		}
	}
	decoded.Close()
	thread.End()
	_ = recorder.Sections([]*values.Thread{thread})()
}
