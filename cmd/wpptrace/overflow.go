package main

import (
	"errors"

	"github.com/spf13/cobra"

	"wpptrace/loader/guard"
)

// An overflow is what to do when the ring buffer is full.
type overflow string

const (
	overflowGap  overflow = "gap"  // lose what comes, and mark the place
	overflowStop overflow = "stop" // stop the process until there is room
)

func (o *overflow) String() string { return string(*o) }
func (o *overflow) Type() string   { return "gap|stop" }

func (o *overflow) Set(text string) error {
	switch v := overflow(text); v {
	case overflowGap, overflowStop:
		*o = v
		return nil
	}
	return errors.New("neither gap nor stop")
}

// guardCommand is what the guard of a process runs, which wpptrace starts itself.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:     guard.Command,
		Short:   "Put probes into a process for wpptrace, and take them out should that be gone",
		Example: "  wpptrace starts it itself",
		Hidden:  true,
		Args:    exactly(0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return guard.Serve() },
	}
}
