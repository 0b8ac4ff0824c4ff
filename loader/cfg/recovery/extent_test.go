package recovery_test

import (
	"fmt"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// fewest returns the number of ways of the switch of a routine that has the fewest. A jump out of
// the routine has none.
func fewest(r *cfg.Routine) int {
	ways := switchWays(r)
	if ends(r)[cfg.TailInd] > 0 || len(ways) == 0 {
		return 0
	}
	return ways[0]
}

// A table is read whole, or its routine left out: it may have gaps, hold the routine's beginning,
// be another than it was, be filled anew, or be packed, and labels may be kept elsewhere.
func TestTablesOfLabels(t *testing.T) {
	covered := coverage{}
	for _, test := range []struct {
		name string // of a file in testdata/tables, which says why
		ways int
	}{
		{"gap", 5},
		{"masked-gap", 5},
		{"gap-of-distances", 4},
		{"gap-of-distances-and-name", 5},
		{"distances-from-a-thousand-on", 5},
		{"gap-and-name", 5},
		{"beginning-of-the-routine", 5},
		{"gap-and-beginning", 5},
		{"changed-by-a-call", 5},
		{"changed-from-behind", 5},
		{"filled-anew", 4},
		{"filled-from-distances", 5},
		{"long-gap", 4},
		{"states-and-characters", 4},
		{"more-entries-than-are-read", 4},
		{"numbers-behind", 5},
		{"changed-by-an-index", 5},
		{"copied-over-16-bytes-at-a-time", 5},
		{"copied-over-64-bytes-at-a-time", 5},
		{"in-records", 4},
		{"loaded-before-a-loop", 3},
		{"packed", 4},
		{"kept-elsewhere", 4},
		{"full-behind-another", 40},
		{"from-far-below-nought", 46},
		{"two-of-distances", 256},
	} {
		covered[test.name] = checkWhole(t, "tables/"+test.name+".c", "f", test.ways, sevenBuilds)
	}
	covered.check(t, "tables.golden")
}

// A bound may be one on what the index is made of, of memory that is another when it is read once
// more, or of a place in the frame that has been written since, though no call between seems to.
func TestBoundsOfWhatTheIndexWas(t *testing.T) {
	covered := coverage{}
	for _, name := range []string{ // files in testdata/bounds, which say why
		"masked",
		"compared",
		"of-a-char",
		"after-setjmp",
		"after-another-setjmp",
		"after-setjmp-through-a-pointer",
		"after-setjmp-that-a-tail-jump-leads-to",
		"written-by-others",
	} {
		covered[name] = checkWhole(t, "bounds/"+name+".c", "f", 8, sevenBuilds)
	}
	covered.check(t, "bounds.golden")
}

// sevenBuilds are flags of the compiler.
var sevenBuilds = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"},
	{"-O1", "-no-pie", "-fno-pie"}, {"-O2", "-no-pie", "-fno-pie"}, {"-Os", "-no-pie", "-fno-pie"},
}

// checkWhole builds a program of testdata in several ways, and expects that the switches of a
// routine have no fewer ways than they have, or that the routine is left out. It returns in how
// many builds the routine is not left out.
func checkWhole(
	t *testing.T, program, symbol string, ways int, builds [][]string,
) (covered int) {
	t.Helper()
	isWhole := func(r *cfg.Routine) bool { return fewest(r) >= ways }
	return checkSwitches(t, program, symbol, fmt.Sprint(ways, " or more"), isWhole, builds)
}

// checkExact is as checkWhole, but expects that each switch has as many ways, and no more.
func checkExact(
	t *testing.T, program, symbol string, ways int, builds [][]string,
) (covered int) {
	t.Helper()
	isExact := func(r *cfg.Routine) bool {
		all := switchWays(r)
		return fewest(r) == ways && all[len(all)-1] == ways
	}
	return checkSwitches(t, program, symbol, fmt.Sprint(ways), isExact, builds)
}

func checkSwitches(
	t *testing.T, program, symbol, want string, isRight func(r *cfg.Routine) bool,
	builds [][]string,
) (covered int) {
	t.Helper()
	for _, flags := range builds {
		r := routine(t, recoverFile(t, compileFile(t, program, flags...)), symbol)
		isUnsure := strings.HasPrefix(r.LeftOut, "unresolved indirect jump") ||
			strings.Contains(r.LeftOut, "address taken")
		if r.LeftOut == "" && !isRight(r) || r.LeftOut != "" && !isUnsure {
			t.Errorf("%s, %s, %q: switches of %d ways, %d jumps out of the routine, want %s; "+
				"left out: %q",
				program, symbol, flags, switchWays(r), ends(r)[cfg.TailInd], want, r.LeftOut)
		} else if r.LeftOut == "" {
			covered++
		}
	}
	return covered
}
