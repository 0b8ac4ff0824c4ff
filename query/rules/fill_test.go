package rules

import (
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// What is found out of all states at once is what is found out of those that are met.
func TestFillEqualsReading(t *testing.T) {
	filled := 0
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		for _, c := range "abc" {
			querytest.Letter(s, c)
		}
		ours, _ := drawRegex(t, 3)
		names := newPathNames(s)
		r, err := parseRule(names, "never a "+ours)
		if err != nil {
			t.Fatal(err)
		}
		x, err := r.automaton(names)
		if err != nil {
			t.Fatal(err)
		}
		backward := rapid.Bool().Draw(t, "backward")
		for i := range s.Threads {
			g := s.Threads[i].Grammar
			atOnce, asMet := newSweep(g, x, backward), newSweep(g, x, backward)
			hits, exit, err := atOnce.whole()
			if err != nil {
				t.Fatal(err)
			}
			if atOnce.states > 0 {
				filled++
			}
			e := asMet.effect(0, x.start)
			if hits != asMet.hitsOf(e, 0, x.start) || exit != e.exit() {
				t.Fatalf("%s: %d hits, then state %d; as met, %d and %d", ours, hits, exit,
					asMet.hitsOf(e, 0, x.start), e.exit())
			}
		}
	})
	if filled == 0 {
		t.Error("no automaton is small enough to read all rules from all of its states")
	}
}

// Hits saturate where all states are read at once, as they do elsewhere.
func TestFillSaturates(t *testing.T) {
	s := querytest.Letters("a")
	var bodies [][]uint32
	for r := 1; r <= 70; r++ {
		bodies = append(bodies, []uint32{wpp.RuleSymbol(r), wpp.RuleSymbol(r)})
	}
	g, err := wpp.NewGrammar(append(bodies, []uint32{0}))
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	r, err := Check(s, []string{"never a"})
	if err != nil || r.Rules[0].Violations != 1<<64-1 {
		t.Errorf("%+v, %v", r, err)
	}
}
