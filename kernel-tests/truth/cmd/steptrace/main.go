//go:build linux && amd64

// Command steptrace single-steps a program and prints one line for each instruction of its main executable that ran:
// the thread's number, from 0, and the link-time address in hex.
//
//	go run ./kernel-tests/truth/cmd/steptrace PROG [ARG...]
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"wpptrace/kernel-tests/truth"
)

func main() {
	if err := steptrace(os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steptrace:", err)
		os.Exit(1)
	}
}

func steptrace(stdout, stderr io.Writer, args []string) error {
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return fmt.Errorf("usage: steptrace PROG [ARG...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	trace, err := truth.Run(ctx, truth.Options{Path: args[0], Args: args[1:]})
	if err != nil {
		return err
	}
	w := bufio.NewWriter(stdout)
	for i, t := range trace.Threads {
		for _, pc := range t.Insns {
			fmt.Fprintf(w, "%d %x\n", i, pc)
		}
	}
	fmt.Fprintf(stderr, "steptrace: %d threads, %d instructions, %d steps, exit %d, signal %d\n",
		len(trace.Threads), trace.Total(), trace.Steps, trace.Exit, trace.Signal)
	return w.Flush()
}
