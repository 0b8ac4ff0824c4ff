package rules

import (
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/querytest"
)

// Answers are those of the same trace in one piece.
func TestSegmentsAnswerAsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		gap := rapid.IntRange(0, 3).Draw(t, "gap")
		a, b := s.Routines[0].Name, s.Routines[len(s.Routines)-1].Name
		want, err := answers(s, a, b, gap)
		if err != nil {
			t.Fatal(err)
		}
		got, err := answers(wpptest.InSegments(s, wpptest.Cuts(t)), a, b, gap)
		if err != nil {
			t.Fatal(err)
		}
		for what := range want {
			if diff := gocmp.Diff(want[what], got[what]); diff != "" {
				t.Fatalf("%s: in one piece -, in segments +:\n%s", what, diff)
			}
		}
	})
}

// answers are those to questions about two routines.
func answers(s *wpp.Snapshot, a, b string, gap int) (map[string]any, error) {
	found, err := Find(s, FindQuery{Pattern: a + " ** " + b, Gap: gap, First: 2, Top: 5})
	if err != nil {
		return nil, err
	}
	rules := []string{a + " before " + b, "every " + a + " followed by " + b,
		"never " + a + " " + b + "*"}
	if a != b {
		rules = append(rules, a+" and "+b+" balanced within 2")
	}
	checked, err := Check(s, rules)
	if err != nil {
		return nil, err
	}
	order, err := PathOrder(s, a, b)
	return map[string]any{"find": found, "rules": checked, "order": order}, err
}

// A sweep keeps what it knows of the rules of one segment only.
func TestSweepForgetsSegments(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	s := querytest.Letters("abcdefg")
	stream := make([]uint32, 400_000)
	for i := range stream {
		stream[i] = random.Uint32N(7)
	}
	s.Threads[0].Grammar = wpptest.GrammarOf(stream...)
	cut := wpptest.InSegments(s, func(length int) []int {
		var cuts []int
		for at := 50_000; at < length; at += 50_000 {
			cuts = append(cuts, at)
		}
		return cuts
	})
	g := cut.Threads[0].Grammar
	a := newPathNames(s)
	p, err := sequencePattern(a, "a b", 0)
	if err != nil {
		t.Fatal(err)
	}
	finder, err := newFinder(a, p)
	if err != nil {
		t.Fatal(err)
	}
	w := newSweep(g, finder.ends, false)
	w.room = 3 * g.Rules() / 2 // of two states and more
	got, _, err := w.whole()
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := newSweep(s.Threads[0].Grammar, finder.ends, false).whole()
	if err != nil || got != want {
		t.Errorf("%d hits, want %d: %v", got, want, err)
	}
}
