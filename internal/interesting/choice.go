package interesting

import (
	"fmt"

	"github.com/spf13/pflag"
)

// A Choice says which paths are of interest, and what becomes of others: as flags do.
type Choice struct {
	Snapshot string // the file whose paths they are
	Hot      int    // so many of the hottest alone; 0: all
	// Pattern is a sequence, as wpptrace find takes it: those alone that it names, where they ran
	// as a part of it; "": all.
	Pattern string
	// All paths of the plan's routines are of interest, also those that never ran, where a routine
	// has 100 at most.
	All    bool
	Others string // CountOthers, IgnoreOthers, or "": not said
}

// gap is how many paths ** stands for at most, as wpptrace find has it unless told otherwise.
const gap = 10

// mostAll is how many paths a routine has at most that are of interest though they never ran.
const mostAll = 100

// Add adds the flags. The texts say what becomes of interesting paths and of others.
func (c *Choice) Add(f *pflag.FlagSet, interesting, others string) {
	f.StringVar(&c.Snapshot, "interesting", "", interesting)
	f.IntVar(&c.Hot, "hot", 0, "with --interesting: of the `N` hottest of these alone; 0: of all")
	f.StringVar(&c.Pattern, "pattern", "", "with --interesting: of those alone that `PATTERN` "+
		"names, which is as find takes it, and that ran as a part of it")
	f.BoolVar(&c.All, "all-paths", false, "with --interesting and -F: of all paths, also those "+
		"that never ran, of routines that have 100 at most")
	f.StringVar(&c.Others, "others", "", "with --interesting: "+others)
}

// Wrong says what is wrong with the flags; "": nothing is. isGiven says of a flag whether it is
// given.
func (c *Choice) Wrong(isGiven func(flag string) bool) string {
	for _, name := range []string{"hot", "pattern", "all-paths", "others"} {
		if c.Snapshot == "" && isGiven(name) {
			return fmt.Sprintf("--%s needs --interesting SNAPSHOT, which says which paths ran, "+
				"and how often", name)
		}
	}
	switch {
	case c.Snapshot == "" && isGiven("interesting"):
		return "--interesting needs a SNAPSHOT: that of a recording of the program"
	case c.Hot < 0:
		return fmt.Sprintf("--hot %d is below 0", c.Hot)
	case c.All && !isGiven("func"):
		return "--all-paths needs -F REGEX: those of which routines"
	case c.All && (c.Hot > 0 || c.Pattern != ""):
		return "--all-paths goes with neither --hot nor --pattern, which choose some paths"
	case c.Others != "" && c.Others != CountOthers && c.Others != IgnoreOthers:
		return fmt.Sprintf("--others %s: count or ignore expected", c.Others)
	}
	return ""
}
