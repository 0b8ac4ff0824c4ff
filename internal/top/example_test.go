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
	ctx, end := context.WithCancel(context.Background())
	go func() {
		<-viewer.Gone()
		end()
	}()
	options := record.Options{Process: p, Output: os.TempDir() + "/top.wpp", Unwritten: true,
		Overhead: 0.05}
	result, err := record.Run(ctx, options, func(e record.Event) {
		if progress, is := e.(record.Progress); is {
			viewer.Progress(progress)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := viewer.End(result.Snapshot, os.Stderr); err != nil {
		log.Fatal(err)
	}
}
