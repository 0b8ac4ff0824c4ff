package messages_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/internal/messages"
	"wpptrace/internal/record"
	"wpptrace/internal/statusline"
)

// What is printed of a library that cannot be traced, and of an end that was asked for.
func ExamplePrinter() {
	p := messages.Printer{PID: 4711, Name: "redis", Err: statusline.New(os.Stdout, true),
		Flags: messages.Flags{Limit: 10 * time.Second}, Explain: error.Error}
	p.Handle(record.LibraryLeftOut{Path: "/lib/libm.so", Err: errors.New("its code has changed")})
	p.Handle(record.Ended{Reason: record.DurationOver})
	// Output:
	// wpptrace: /lib/libm.so is not traced: its code has changed
	// wpptrace: 10s are over: tracing of process 4711 (redis) ended
}

// Losses are an error where the user wants that.
func ExampleErrLost() {
	p := messages.Printer{Err: statusline.New(os.Stdout, true), Flags: messages.Flags{Strict: true}}
	r := &record.Result{Losses: record.Losses{Err: errors.New("the kernel does not say it")}}
	r.Snapshot = &wpp.Snapshot{}
	fmt.Println(errors.Is(p.Watched(r), messages.ErrLost))
	// Output:
	// lost: unknown (the kernel does not say it)
	// true
}
