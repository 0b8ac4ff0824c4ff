package coverage

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A Watching is what the flags of the command say that reports what is new.
type Watching struct {
	Baselines []string // files
	Log       string   // file; "": none
	Most      int      // events a second
	Restarts  bool
	Paths     bool
	Edges     bool
	Overhead  float64 // per cent
}

// Add adds the flags.
func (w *Watching) Add(f *pflag.FlagSet) {
	const most, overhead = 100, 5
	f.StringArrayVar(&w.Baselines, "baseline", nil, "what `FILE` has run is not new (repeatable)")
	f.StringVar(&w.Log, "log", "", "append a JSON object for each event to `FILE`, too")
	f.BoolVar(&w.Restarts, "restarts", false, "with -p: when the process has ended, go on with the next "+
		"of the same name and build")
	f.IntVar(&w.Most, "most", most, "print at most `N` events a second")
	f.BoolVar(&w.Paths, "paths", false, "report routines that run paths which no baseline has, too")
	f.BoolVar(&w.Edges, "edges", false, "report edges that no baseline has taken between blocks "+
		"that run, too")
	f.Float64Var(&w.Overhead, "overhead", overhead, "with -p and --paths or --edges: at most "+
		"`PERCENT` of the process's CPU time go to hits of each of the two")
}

// Wrong says what is wrong with the flags; "": nothing is. isGiven says of a flag whether it is
// given.
func (w *Watching) Wrong(isGiven func(flag string) bool) string {
	switch {
	case len(w.Baselines) == 0:
		return "no baseline: give --baseline FILE, as wpptrace coverage -o writes it"
	case w.Most <= 0:
		return fmt.Sprintf("--most %d is not positive", w.Most)
	case isGiven("overhead") && !w.Paths && !w.Edges:
		return "--overhead is of no use without --paths or --edges"
	case isGiven("overhead") && !isGiven("pid"):
		return "--overhead needs -p: hits of a command are not limited"
	case w.Restarts && !isGiven("pid"):
		return "--restarts needs -p: a command is watched once"
	case !(w.Overhead > 0 && w.Overhead <= 100):
		return "--overhead is no percentage above 0 and up to 100"
	}
	return ""
}
