package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"wpptrace/internal/hotspots"
)

func hotCommand() *cobra.Command {
	q := &hotspots.Question{}
	c := asking(&cobra.Command{
		Use: "hot [--routines | --callers ROUTINE | --lines FILE | --disasm ROUTINE] [FLAG...] " +
			"SNAPSHOT",
		Short: "Print the hot subpaths of a snapshot: where the program's instructions go, in " +
			"sequence",
		Example: hotspots.Example, Long: hotspots.Help,
	}, q, 0, "a snapshot")
	q.Note = func(format string, args ...any) {
		fmt.Fprintf(c.ErrOrStderr(), "wpptrace: "+format+"\n", args...)
	}
	return c
}
