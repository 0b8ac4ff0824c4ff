package main

import (
	"cmp"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"wpptrace/internal/interesting"
	"wpptrace/internal/pathcount"
	"wpptrace/internal/record"
)

// countFlags are those of wpptrace profile --interesting.
type countFlags struct {
	record   *recordFlags
	snapshot string // "": all paths are counted, by the plan of a recording
	hot      int
	others   string
}

// ofCounting are the flags of a profile that go with --interesting.
var ofCounting = []string{"pid", "duration", "func", "no-func", "json", "quiet", "verbose",
	"interesting", "hot", "others"}

func (o *countFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.snapshot, "interesting", "", "count the paths alone that `SNAPSHOT` has recorded")
	f.IntVar(&o.hot, "hot", 0, "with --interesting: the `N` hottest of these alone")
	f.StringVar(&o.others, "others", "", "with --interesting: `ignore` all other paths, as is the "+
		"default, or count those of a routine together")
}

func (o *countFlags) check(c *cobra.Command) error {
	for _, name := range ofProfile {
		if o.snapshot != "" && c.Flags().Changed(name) && !slices.Contains(ofCounting, name) {
			return usagef("--%s does not go with --interesting, which makes no recording", name)
		}
	}
	if o.snapshot == "" && o.hot != 0 {
		return usagef("--hot needs --interesting SNAPSHOT, which says how often paths ran")
	}
	if o.hot < 0 {
		return usagef("--hot %d is below 0", o.hot)
	}
	return checkOthers(o.snapshot, o.others)
}

// run counts paths of a process or a command, and prints how often they ran.
func (o *countFlags) run(argv []string, stdout, stderr io.Writer) error {
	s := watchSignals()
	defer s.stop()
	if err := mayRecord(); err != nil {
		return err
	}
	outlivePipes()
	out := stdout
	if len(argv) > 0 {
		out = stderr
	}
	return recordTarget(o.record, s, argv, stderr, func(from record.Options) error {
		process := from.Process
		if from.Child != nil {
			process = from.Child.Process
		}
		p, shared := o.record.observed(s, process, stderr)
		defer p.Prepared()
		if err := o.record.checkTarget(process); err != nil {
			return record.KillUnstarted(from.Child, err)
		}
		r, err := pathcount.Run(s.end, pathcount.Options{
			Process: from.Process, Child: from.Child, Selection: shared.Selection,
			Snapshot: o.snapshot, Hot: o.hot, Others: o.others == interesting.CountOthers,
			Duration: shared.Duration, Confine: shared.Confine,
			Began: func(pid, probes, stepped int) {
				shared.Began(pid, probes)
				if stepped > 0 {
					p.Say("%d of them are single-stepped: a hit takes as long as 40 of others", stepped)
				}
			},
		})
		switch {
		case r == nil:
			return err
		case o.record.json:
			return cmp.Or(r.WriteJSON(out), err)
		}
		return cmp.Or(r.WriteText(out), err)
	})
}
