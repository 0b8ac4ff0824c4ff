package main

import (
	"cmp"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"wpptrace/internal/interesting"
	"wpptrace/internal/pathcount"
	"wpptrace/internal/text"
	"wpptrace/loader/paths/overlap"
)

// countFlags are those of wpptrace profile --interesting.
type countFlags struct {
	record *recordFlags
	paths  interesting.Choice // no Snapshot: all are counted, by the plan of a recording
}

// ofCounting are the flags of a profile that go with --interesting.
var ofCounting = []string{"pid", "duration", "func", "no-func", "json", "quiet", "verbose",
	"interesting", "hot", "pattern", "all-paths", "others"}

func (o *countFlags) add(c *cobra.Command) {
	o.paths.Add(c.Flags(), "count the paths alone that `SNAPSHOT` has recorded", "`ignore` all "+
		"other paths, as is the default, or count those of a routine together")
	c.Flags().IntVar(&o.record.overlap, "overlap", -1, "count besides how each path goes on behind "+
		"a back edge, call or return, up to the `K`+1st predicate")
	c.Flags().Lookup("overlap").DefValue = "0" // which help does not print
}

func (o *countFlags) check(c *cobra.Command) error {
	for _, name := range ofProfile {
		if o.paths.Snapshot != "" && c.Flags().Changed(name) && !slices.Contains(ofCounting, name) {
			return usagef("--%s does not go with --interesting, which makes no recording", name)
		}
	}
	if wrong := o.paths.Wrong(c.Flags().Changed); wrong != "" {
		return usagef("%s", wrong)
	}
	return checkOverlap(c, o.record.overlap, o.paths.Snapshot)
}

// checkOverlap checks a degree of overlap.
func checkOverlap(c *cobra.Command, degree int, snapshot string) error {
	switch {
	case !c.Flags().Changed("overlap"):
		return nil
	case degree < 0 || degree > overlap.MostDegree:
		return usagef("--overlap %d is not from 0 to %d", degree, overlap.MostDegree)
	case snapshot != "":
		return usagef("--overlap and --interesting are two questions: give one of them")
	}
	return nil
}

// run counts paths of a process or a command, and prints how often they ran.
func (o *countFlags) run(argv []string, stdout, stderr io.Writer) error {
	return o.record.observe(argv, stdout, stderr, func(by *observing) error {
		own := by.options
		r, err := pathcount.Run(by.signals.End, pathcount.Options{
			Process: own.Process, Child: own.Child, Selection: own.Selection,
			Paths: o.paths, Duration: own.Duration, Confine: own.Confine,
			Began: func(pid, probes, stepped int) {
				own.Began(pid, probes)
				if stepped > 0 {
					by.printer.Say("%s among them: a hit of one takes as long as 40 of others",
						text.Count(stepped, "single-stepped probe"))
				}
			},
		})
		switch {
		case r == nil:
			return err
		case o.record.json:
			return cmp.Or(r.WriteJSON(by.out), err)
		}
		return cmp.Or(r.WriteText(by.out), err)
	})
}
