package query

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/windows"
	"wpptrace/query/querytest"
)

// inWindows is a snapshot of threads, in whose texts windows end at each bar.
func inWindows(texts ...string) *wpp.Snapshot {
	s := querytest.BuildOf(querytest.Letters(texts...), "1")
	s.Figures.Sampled = 0.1
	for _, text := range texts {
		s.Figures.Windows = max(s.Figures.Windows, uint64(strings.Count(text, "|")))
	}
	s.Symbols[querytest.Letter(s, '|')] = wpp.Symbol{IsMark: true, Mark: ops.Gap}
	return s
}

// TestClustersEqualBruteForce: windows that are cut out of a grammar hold what their texts do, and
// all of them what the whole does.
func TestClustersEqualBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []string
		for range rapid.IntRange(0, 12).Draw(t, "windows") {
			parts = append(parts, rapid.StringMatching("(ab|abc|c|aa){0,9}").Draw(t, "window"))
		}
		rest := rapid.StringMatching("(ab|c){0,2}").Draw(t, "rest")
		s := inWindows(strings.Join(append(slices.Clone(parts), rest), "|"))
		if rest != "" {
			parts = append(parts, rest)
		}
		texts := []string{"a", "c", "ab", "aa", "bca", "abab"}
		for _, text := range texts {
			unspell(s, text) // the alphabet has all of them
		}
		c, err := clusterOf(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.clusters) != len(parts) || c.windows != len(parts) {
			t.Fatalf("%d clusters of %d windows, want %d", len(c.clusters), c.windows, len(parts))
		}
		for _, text := range texts {
			sequence := unspell(s, text)
			for i, f := range c.clusters {
				d := operand{forest: f}
				want := 0
				for k := range parts[i] {
					if strings.HasPrefix(parts[i][k:], text) {
						want++
					}
				}
				if got := d.countAll([][]uint32{sequence})[0]; got != uint64(want) {
					t.Fatalf("%q in %q: %d, want %d", text, parts[i], got, want)
				}
			}
		}
	})
}

// TestClustersOfThreads: what threads ran in the same window is one cluster. Without a list of
// windows it is not known.
func TestClustersOfThreads(t *testing.T) {
	s := inWindows("aaa|a|aa|", "bb|b")
	if _, err := clusterOf(s); err == nil {
		t.Error("without lists")
	}
	s.Sections = []*wpp.Section{windows.Lists{{1, 2, 3}, {2}}.Section()}
	c, err := clusterOf(s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range c.clusters {
		counts := f.Counts()
		got = append(got, strings.Repeat("a", int(counts[querytest.Letter(s, 'a')]))+
			strings.Repeat("b", int(counts[querytest.Letter(s, 'b')])))
	}
	// the second thread's last was in a window that has not ended
	if want := []string{"aaa", "abb", "aa", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.Sections = []*wpp.Section{windows.Lists{{1, 2}, {2}}.Section()}
	if _, err := clusterOf(s); err != nil {
		t.Errorf("with a window that has not ended: %v", err)
	}
	s.Sections = []*wpp.Section{windows.Lists{{1}, {2}}.Section()}
	if _, err := clusterOf(s); err == nil {
		t.Error("with a list that does not fit")
	}
}

// TestManyWindows: more windows than there are clusters are put together.
func TestManyWindows(t *testing.T) {
	c, err := clusterOf(inWindows(strings.Repeat("ab|", 3*mostClusters+1)))
	if err != nil || c.windows != 3*mostClusters+1 || len(c.clusters) > mostClusters ||
		len(c.clusters) < mostClusters/2 {
		t.Errorf("%d clusters of %d windows, %v", len(c.clusters), c.windows, err)
	}
}

// phases are windows of a program whose letters have the same shares all the time but for x, and
// which does one thing for a while: in each window one letter of its own comes often.
func phases(r *rand.Rand, n int, x float64) string {
	var text strings.Builder
	for range n {
		often := "abcdefgh"[r.IntN(8)]
		for range 50 + r.IntN(100) {
			switch u := r.Float64(); {
			case u < x:
				text.WriteByte('x')
			case u < 0.5:
				text.WriteByte(often)
			default:
				text.WriteByte("abcdefgh"[r.IntN(8)])
			}
		}
		text.WriteByte('|')
	}
	return text.String()
}

// TestDiffHidesNoise: of two recordings in windows, what differs by chance was listed with what
// really does.
func TestDiffHidesNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	a, b := inWindows(phases(r, 20, 0.1)), inWindows(phases(r, 20, 0.2))
	both := [2]*wpp.Snapshot{a, b}
	q := DiffQuery{Hot: HotQuery{MinLength: 2, MaxLength: 2, MinShare: 0.01}, Share: true}
	d, err := Diff(a, b, q)
	if err != nil || d.Unsure != nil {
		t.Fatal(err, d)
	}
	if d.Windows != [2]int{20, 20} || d.Hidden[0] != 8 || len(d.Paths) != 1 ||
		nameOf(&d.Paths[0], both) != "x" || d.Found[0] != 1 {
		t.Errorf("%+v", d)
	}
	x := &d.Paths[0]
	if c := x.Certainty; x.Chance || c == nil || !(c.Lo > 0 && c.Lo < 0.1 && c.Hi > 0.1) {
		t.Errorf("x: %+v %+v", x, x.Certainty)
	}
	if len(d.Routines) != 1 || d.Routines[0].CountB != x.CountB || d.Hidden[2] != 8 ||
		d.Routines[0].Certainty.P != x.Certainty.P {
		t.Errorf("routines: %+v", d.Routines) // each has one path
	}
	for i := range d.Subpaths {
		if name := nameOf(&d.Subpaths[i], both); !strings.Contains(name, "x") {
			t.Errorf("subpath %s is listed: %+v", name, d.Subpaths[i].Certainty)
		}
	}
	q.All = true
	if d, err = Diff(a, b, q); err != nil || d.Hidden != [3]int{} || len(d.Paths) != 9 {
		t.Errorf("all: %+v, %v", d, err)
	}
	for i := range d.Paths {
		if p := &d.Paths[i]; p.Chance != (nameOf(p, both) != "x") {
			t.Errorf("%s: %+v", nameOf(p, both), p)
		}
	}
	// against a run that was traced as a whole, which has no error
	b.Figures.Windows, q.All = 0, false
	if d, err = Diff(a, b, q); err != nil || d.Windows != [2]int{20, 0} ||
		nameOf(&d.Paths[0], both) != "x" {
		t.Errorf("against a whole one: %+v, %v", d, err)
	}
	one := inWindows("abab|")
	if d, err = Diff(a, one, q); err != nil || d.Unsure == nil || d.Hidden != [3]int{} {
		t.Errorf("with a window: %+v, %v", d, err)
	}
	q.Share = false
	if d, err = Diff(a, inWindows(phases(r, 20, 0.2)), q); err != nil || d.Hidden != [3]int{} ||
		d.Paths[0].Certainty != nil {
		t.Errorf("of costs: %+v, %v", d, err)
	}
}

// TestDiffOfTheSameIsNoise: of runs of a program that does the same, nothing, or nearly, is listed.
func TestDiffOfTheSameIsNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const runs = 100
	listed := 0
	for range runs {
		d, err := Diff(inWindows(phases(r, 12, 0.1)), inWindows(phases(r, 12, 0.1)),
			DiffQuery{Hot: DefaultHotQuery(), Share: true})
		if err != nil {
			t.Fatal(err)
		}
		if d.Found[0] > 0 {
			listed++
		}
	}
	if listed > runs/10 {
		t.Errorf("in %d of %d runs differences of the same are listed", listed, runs)
	}
}
