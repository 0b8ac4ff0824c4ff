package top_test

import (
	"context"
	"log"
	"os"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/top"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// Show the recording of a process until its user has had enough.
func ExampleStart() {
	guard.Main() // first in main: the guard and the viewer are this program, started again
	top.Main()
	var p *target.Process // to be opened
	viewer, err := top.Start(top.Opening{Process: p.Name, Interval: time.Second, Budget: 0.05,
		MaxStall: record.DefaultMaxStall}, os.Stdin, os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	messages := log.New(viewer.Messages(os.Stderr), "", 0)
	options := record.Options{Process: p, Unwritten: true, Overhead: 0.05}
	result, err := viewer.Record(context.Background(), options, func(e record.Event) {
		if _, is := e.(record.WindowsBegin); is {
			messages.Print("it is traced in windows from here on")
		}
	})
	if err := viewer.End(result, nil, os.Stderr); err != nil {
		log.Print(err)
	}
	if err != nil {
		log.Fatal(err)
	}
}
