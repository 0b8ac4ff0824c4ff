package plan_test

import (
	"slices"
	"testing"

	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/plan"
)

// Several jumps in a row ask for the value of one register, and each round of the loop makes a word
// that cannot carry it: another word, which can, is put there and tells them all.
func TestWordForItsValueAlone(t *testing.T) {
	builder, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := builder.Build(t.Context(), zoo.Named("relabelled"), zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
	if err != nil {
		t.Fatal(err)
	}
	p := planned(t, recovered(t, path), plan.Options{})
	r := routine(t, p, "run")
	carriers := 0
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Routine != r.ID || s.Case == nil {
			continue
		}
		carriers++
		if len(s.Case.Jumps) < 2 || slices.ContainsFunc(s.Case.Jumps, func(b int) bool { return r.Site(b) != nil }) {
			t.Errorf("the word at %x tells the jumps of blocks %v, each by its value alone?", s.Addr, s.Case.Jumps)
		}
	}
	if carriers == 0 {
		t.Error("no word carries the value")
	}
}
