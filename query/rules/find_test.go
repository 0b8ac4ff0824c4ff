package rules

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/query/querytest"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		texts   []string
		pattern string
		gap     int
		want    []string // thread, position and what is there
	}{
		{[]string{"abbcabbcabbc"}, "a b", 0, []string{"100 0 ab", "100 4 ab", "100 8 ab"}},
		{[]string{"abbcabbcabbc"}, "c a", 0, []string{"100 3 ca", "100 7 ca"}},
		{[]string{"abbcabbcabbc"}, "a#0 * * c#0", 0,
			[]string{"100 0 abbc", "100 4 abbc", "100 8 abbc"}},
		{[]string{"abbcabbcabbc"}, "b ** c", 3, []string{"100 2 bc", "100 6 bc", "100 10 bc"}},
		{[]string{"abbcabbcabbc"}, "a ** a", 3, []string{"100 0 abbca", "100 4 abbca"}},
		{[]string{"abbcabbcabbc"}, "a ** a", 2, nil},
		{[]string{"aaa"}, "a a", 0, []string{"100 0 aa", "100 1 aa"}},
		{[]string{"ab", "cab"}, "'a' \"b\"", 0, []string{"100 0 ab", "101 1 ab"}},
		{[]string{"a#b ab"}, "a ** b", 5, []string{"100 4 ab"}},
		{[]string{"ab"}, "a() b()", 0, []string{"100 0 ab"}},
	} {
		s := querytest.Letters(tt.texts...)
		r, err := Find(s, FindQuery{Pattern: tt.pattern, Gap: tt.gap, First: 1, Top: 100})
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		var got []string
		for _, o := range r.Occurrences {
			got = append(got, fmt.Sprint(o.TID, " ", o.Position, " ",
				querytest.Spell(s, o.Symbols)))
		}
		if !slices.Equal(got, tt.want) || r.Count != uint64(len(tt.want)) {
			t.Errorf("%s in %q: %d, %q, want %q", tt.pattern, tt.texts, r.Count, got, tt.want)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	for pattern, want := range map[string]string{
		" ":  "find: no path is named",
		"**": "find **: it matches where nothing ran",
		"nosuch": "find nosuch: no routine nosuch: name one as dump prints it, in quotes " +
			"if there are spaces or signs in it",
		"main#x":        `find main#x: main#x: "x" is no number of a path`,
		"main#999":      `find main#999: main#999: the routine has 3 paths`,
		"main | main":   `find main | main: "|" is neither a name, nor *, nor **: put names that hold it in quotes`,
		"'main":         "find 'main: no ' at the end of 'main",
		"main ** ** **": "find main ** ** **: more than 512 paths, repetitions spelt out",
	} {
		q := FindQuery{Pattern: pattern, Gap: 300, First: 1}
		if _, err := Find(querytest.Compressor(), q); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", pattern, err, want)
		}
		depends := pattern == "nosuch" || pattern == "main#x" || pattern == "main#999"
		if err := q.Validate(); (err == nil) != depends {
			t.Errorf("%s, whatever the snapshot: %v", pattern, err)
		}
	}
	if _, err := Find(querytest.Compressor(), FindQuery{Pattern: "main"}); err == nil {
		t.Error("occurrence 0 is found")
	}
}

// item is one of a pattern: a letter, "." for any, "~" for up to gap.
func bruteFind(s *wpp.Snapshot, items string, gap int) []Occurrence {
	var found []Occurrence
	for i, text := range querytest.Streams(s) {
		for end := range text {
			for begin := end; begin >= max(0, end-len(items)*(gap+1)); begin-- {
				if bruteMatch(s, text[begin:end+1], items, gap) {
					found = append(found,
						Occurrence{TID: 100 + i, Position: uint64(begin),
							Length: uint64(end - begin + 1)})
					break
				}
			}
		}
	}
	return found
}

func bruteMatch(s *wpp.Snapshot, text []uint32, items string, gap int) bool {
	switch {
	case items == "":
		return len(text) == 0
	case items[0] == '~':
		for n := 0; n <= min(gap, len(text)); n++ {
			if !slices.ContainsFunc(text[:n],
				func(sym uint32) bool { return s.Symbols[sym].IsMark }) && bruteMatch(s, text[n:],
				items[1:], gap) {
				return true
			}
		}
		return false
	case len(text) == 0 || s.Symbols[text[0]].IsMark ||
		items[0] != '.' && s.RoutineOf(text[0]).Name != items[:1]:
		return false
	}
	return bruteMatch(s, text[1:], items[1:], gap)
}

func TestFindEqualsBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		names := ".~"
		for i := range s.Routines {
			names += s.Routines[i].Name
		}
		items := "a"
		for range rapid.IntRange(0, 4).Draw(t, "items") {
			items += string(rapid.SampledFrom([]rune(names)).Draw(t, "item"))
		}
		gap := rapid.IntRange(0, 4).Draw(t, "gap")
		first := rapid.IntRange(1, 5).Draw(t, "first")
		checkFind(t, s, items, gap, first)
	})
}

// checkFind compares the first occurrences, from one on, and how many there are, with those of
// bruteFind.
func checkFind(t querytest.Fataler, s *wpp.Snapshot, items string, gap, first int) {
	pattern := strings.NewReplacer(".", "* ", "~",
		"** ").Replace(strings.Join(strings.Split(items, ""), " "))
	got, err := Find(s, FindQuery{Pattern: pattern, Gap: gap, First: uint64(first), Top: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := bruteFind(s, items, gap)
	if got.Count != uint64(len(want)) {
		t.Fatalf("%s occurs %d times, want %d", pattern, got.Count, len(want))
	}
	want = want[min(len(want), first-1):min(len(want), first+3)]
	for i := range got.Occurrences {
		o := &got.Occurrences[i]
		stream := querytest.Streams(s)[o.TID-100][o.Position:][:len(o.Symbols)]
		if !slices.Equal(stream, o.Symbols) {
			t.Fatalf("at %d is %v, not %v", o.Position, stream, o.Symbols)
		}
		o.Symbols = nil
	}
	if diff := gocmp.Diff(want, got.Occurrences); len(want)+len(got.Occurrences) > 0 && diff != "" {
		t.Fatalf("%s, gap %d: brute force -, Find +:\n%s", pattern, gap, diff)
	}
}

// TestFindInEndless asks a grammar that derives 2^60 paths.
func TestFindInEndless(t *testing.T) {
	s := querytest.Doubling(t)
	const all = 1 << 60
	r, err := Find(s, FindQuery{Pattern: "a a a", First: all - 3, Top: 9})
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != all-2 || len(r.Occurrences) != 2 || r.Occurrences[1].Position != all-3 {
		t.Errorf("%+v", r)
	}
}

// TestFindBeyond: what lies behind 2^64-1 paths is counted, and not where it is.
func TestFindBeyond(t *testing.T) {
	s := querytest.Letters("ab")
	bodies := [][]uint32{{wpp.RuleSymbol(1), 1}}
	for r := 2; r <= 70; r++ {
		bodies = append(bodies, slices.Repeat([]uint32{wpp.RuleSymbol(r)}, 2))
	}
	g, err := wpp.NewGrammar(append(bodies, []uint32{0, 0}))
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	r, err := Find(s, FindQuery{Pattern: "a b", First: 1, Top: 9})
	if err != nil || r.Count != 1 || len(r.Occurrences) != 1 ||
		r.Occurrences[0].Position != math.MaxUint64 {
		t.Errorf("%+v %v", r, err)
	}
}

// TestFindGivesUp: where a may have been in any of the last 16 places, there are more states than
// fit on a stream without order.
func TestFindGivesUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 1 << 17 {
		text.WriteByte("ab"[random.IntN(2)])
	}
	_, err := Find(querytest.Letters(text.String()),
		FindQuery{Pattern: "a" + strings.Repeat(" *", 15) + " b", First: 1})
	if !errors.Is(err, errTooComplex) {
		t.Error(err)
	}
}

// TestFindListsMany: each occurrence that was listed took the time to read the start rule up to it.
func TestFindListsMany(t *testing.T) {
	const length, listed, most = 1 << 20, 20_000, 10 * time.Second // 0.2 s; it was minutes
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := querytest.Letters("ab")
	stream := make([]uint32, length)
	for i := range stream {
		stream[i] = uint32(i) % 2
	}
	g, err := wpp.NewGrammar([][]uint32{stream})
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	began := testenv.ThreadTime()
	r, err := Find(s, FindQuery{Pattern: "b a", First: length/2 - listed, Top: listed})
	if took := testenv.ThreadTime() - began; err != nil || took > most {
		t.Fatalf("%v, %v", took, err)
	}
	if last := r.Occurrences[len(r.Occurrences)-1]; len(r.Occurrences) != listed ||
		last.Position != length-3 || last.Length != 2 {
		t.Errorf("%d occurrences, the last %+v", len(r.Occurrences), last)
	}
}

func BenchmarkFind(b *testing.B) {
	q := FindQuery{Pattern: "r1#1 * r1#6 ** r1#7", Gap: 10, First: 1, Top: 10}
	querytest.Compare(b, 15, func(s *wpp.Snapshot) uint64 {
		r, err := Find(s, q)
		if err != nil {
			b.Fatal(err)
		}
		return r.Count
	}, func(s *wpp.Snapshot) (count uint64) {
		names := newPathNames(s)
		p, err := sequencePattern(names, q.Pattern, q.Gap)
		if err != nil {
			b.Fatal(err)
		}
		x, err := newFinder(names, p)
		if err != nil {
			b.Fatal(err)
		}
		return readExpanded(s, x.ends)
	})
}

// readExpanded counts the hits of an automaton on the expansion.
func readExpanded(s *wpp.Snapshot, a *automaton) (count uint64) {
	state := a.start
	for sym := range s.Threads[0].Grammar.Expand(0) {
		to, hit := a.next(state, sym)
		if hit {
			count++
		}
		state = to
	}
	return count
}

// The hits of a rule may be more than its effect has bits for.
func TestHitsBeyondAnEffect(t *testing.T) {
	s := querytest.Letters("ab")
	bodies := [][]uint32{{wpp.RuleSymbol(1), 1}}
	for r := 2; r <= 50; r++ {
		bodies = append(bodies, []uint32{wpp.RuleSymbol(r), wpp.RuleSymbol(r)})
	}
	g, err := wpp.NewGrammar(append(bodies, []uint32{0}))
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	for _, first := range []uint64{1, manyHits - 1, manyHits, manyHits + 1, 1 << 49} {
		r, err := Find(s, FindQuery{Pattern: "a", First: first, Top: 1})
		if err != nil {
			t.Fatal(err)
		}
		if r.Count != 1<<49 || len(r.Occurrences) != 1 || r.Occurrences[0].Position != first-1 {
			t.Errorf("occurrence %d of %d: %+v", first, r.Count, r.Occurrences)
		}
	}
}
