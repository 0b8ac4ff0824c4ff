package main

import (
	"github.com/spf13/cobra"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/privilege"
)

// takers take the capabilities of commands that record processes, or look at them, by the name of
// the command. Every other command drops all that wpptrace was given, before it opens anything.
var takers = map[string]func(*cobra.Command) error{
	"wpptrace": func(*cobra.Command) error { return privilege.TakeAll() },
	"profile":  func(*cobra.Command) error { return privilege.TakeAll() },
	"residual": func(*cobra.Command) error { return privilege.TakeAll() },
	"coverage": func(c *cobra.Command) error {
		if !c.Flags().Changed("pid") && !c.Flags().Changed("attach-all") &&
			c.ArgsLenAtDash() < 0 { // files are read
			return privilege.Take()
		}
		return privilege.TakeAll()
	},
	"values": func(c *cobra.Command) error {
		if c.Flags().Changed("stat") || c.Flags().Changed("at") { // a snapshot is read
			return privilege.Take()
		}
		return privilege.TakeAll()
	},
	"top":   func(*cobra.Command) error { return privilege.TakeAll() },
	"check": func(*cobra.Command) error { return privilege.Take(lookers...) },
	"plan": func(c *cobra.Command) error {
		switch {
		case !c.Flags().Changed("pid"): // a file is planned
			return privilege.Take()
		case c.Flags().Changed("canary"):
			return privilege.TakeAll()
		}
		return privilege.Take(lookers...)
	},
}

// lookers are what it takes to look at a process and at the files that it runs, and to find out
// what the kernel can do.
var lookers = []cap.Value{cap.BPF, cap.PERFMON, cap.SYS_ADMIN, cap.SYS_PTRACE,
	cap.CHECKPOINT_RESTORE, cap.DAC_READ_SEARCH}

// withPowers has a command run with the capabilities that it takes, and without any other.
func withPowers(c *cobra.Command) {
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		take := takers[c.Name()]
		if take == nil {
			take = func(*cobra.Command) error { return privilege.Take() }
		}
		if err := take(c); err != nil {
			return err
		}
		return run(c, args)
	}
}
