//go:build linux && amd64

// Command steptrace single-steps a program and prints one line for each instruction of its main
// executable that ran: the thread's number, from 0, and the link-time address in hex. It is for
// those who look for the cause of a difference.
//
//	go run ./kernel-tests/truth/cmd/steptrace [-values] -- PROG [ARG...] <INPUT
//
// With -values each line has what the instruction has written and accessed, as `wpptrace dump --as
// values` prints it, and addresses are not randomised.
//
// The program reads standard input, if that is not a terminal; its output goes to standard error.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"wpptrace/kernel-tests/truth"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := steptrace(ctx, os.Stdin, os.Stdout, os.Stderr, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "steptrace:", err)
		os.Exit(1)
	}
}

func steptrace(ctx context.Context, stdin *os.File, stdout, stderr io.Writer, args []string) error {
	values := len(args) > 0 && args[0] == "-values"
	if values {
		args = args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("usage: steptrace [-values] -- PROG [ARG...]")
	}
	var input []byte
	if info, err := stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		if input, err = io.ReadAll(stdin); err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
	}
	trace, err := truth.Run(ctx, truth.Options{Path: args[0], Args: args[1:], Stdin: input,
		Values: values, FixedAddresses: values})
	if err != nil {
		return err
	}
	if _, err := stderr.Write(append(trace.Stdout, trace.Stderr...)); err != nil {
		return fmt.Errorf("write the program's output: %w", err)
	}
	w := bufio.NewWriter(stdout)
	for i, t := range trace.Threads {
		if values {
			t.TID = i
			if err := truth.WriteValues(w, t, filepath.Base(args[0])); err != nil {
				return err
			}
			continue
		}
		for _, pc := range t.Insns {
			fmt.Fprintf(w, "%d %x\n", i, pc)
		}
	}
	fmt.Fprintf(stderr, "steptrace: %d threads, %d instructions, %d steps, exit %d, signal %d\n",
		len(trace.Threads), trace.Total(), trace.Steps, trace.Exit, trace.Signal)
	return w.Flush()
}
