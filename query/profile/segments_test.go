package profile

import (
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/names"
	"wpptrace/query/querytest"
)

// answers are those to all questions about a grammar.
func answers(t querytest.Fataler, s *wpp.Snapshot, name string) map[string]any {
	all := map[string]any{}
	put := func(what string, answer any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		all[what] = answer
	}
	flat, err := Flat(s)
	put("flat", flat, err)
	callers, err := CallersOf(s, name)
	put("callers", callers, err)
	listings, err := Listings(s, name)
	put("listings", listings, err)
	return all
}

func sameAnswers(t querytest.Fataler, s, cut *wpp.Snapshot, name string) {
	if diff := gocmp.Diff(answers(t, s, name), answers(t, cut, name)); diff != "" {
		t.Fatalf("in one piece -, in segments +:\n%s", diff)
	}
}

// oneByOne has the segments read one after the other.
func oneByOne(t testing.TB) {
	before := debug.SetMemoryLimit(128)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}

// TestSegmentsAnswerAsOne: all answers are those of the same trace in one piece, whether segments
// are read at once or one after the other.
func TestSegmentsAnswerAsOne(t *testing.T) {
	check := func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := querytest.DrawSnapshot(t)
			sameAnswers(t, s, wpptest.InSegments(s, wpptest.Cuts(t)), s.Routines[0].Name)
		})
	}
	t.Run("at once", check)
	t.Run("one by one", func(t *testing.T) {
		oneByOne(t)
		check(t)
	})
}

// TestSegmentsOfTraces: the beginnings of traces, those in WPP_TRACES too, cut anywhere.
func TestSegmentsOfTraces(t *testing.T) {
	for name, stream := range querytest.Beginnings(t, 200_000) {
		s := querytest.NewTrace(name, stream).Packed
		random := rand.New(rand.NewPCG(3, 4))
		cut := wpptest.InSegments(s, func(length int) []int {
			cuts := []int{random.IntN(length), random.IntN(length), random.IntN(length)}
			slices.Sort(cuts)
			return cuts
		})
		check := func(t *testing.T) { sameAnswers(t, s, cut, names.Plain(&s.Routines[0])) }
		t.Run(fmt.Sprint(name, " at once"), check)
		t.Run(fmt.Sprint(name, " one by one"), func(t *testing.T) {
			oneByOne(t)
			check(t)
		})
	}
}
