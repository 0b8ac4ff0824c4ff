package planner_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/plan/planner"
)

// Several jumps in a row ask for the value of one register, and each round of the loop makes an
// event that cannot capture it: another event, which can, is put there and says where all go.
func TestEventForItsValueAlone(t *testing.T) {
	builder, err := zoo.NewBuilder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path, err := builder.Build(t.Context(), zoo.Named("relabelled"),
		zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true})
	if err != nil {
		t.Fatal(err)
	}
	p := planned(t, recovered(t, path), planner.Options{})
	r := routine(t, p, "run")
	carriers := 0
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Routine != r.ID || s.Capture == nil {
			continue
		}
		carriers++
		if len(s.Capture.Jumps) < 2 || slices.ContainsFunc(s.Capture.Jumps,
			func(b int) bool { return r.Site(b) != nil }) {
			t.Errorf("the event at %x decides the jumps of blocks %v, each by its value alone?",
				s.Addr, s.Capture.Jumps)
		}
	}
	if carriers == 0 {
		t.Error("no event carries the value")
	}
}

// What one of two ways overwrites that meet is not the value that the event before them has
// captured: it does not decide the jump behind.
func TestValueIsOverwrittenOnOneWay(t *testing.T) {
	// a prefix that no probe may sit on
	const ask = `test %esi,%esi\nje 0f\nmov %ecx,%r8d\n0: cmp $1,%edi\nje 1f\n{}\n2: cmp $5,%edi\n.byte 0x48, 0x0f, 0x84\n.long 3f - . - 4\nnop\nret\n3: nop\nret\n1: {}\n.byte 0x48, 0xe9\n.long 2b - . - 4`
	way := func(here, there string) string {
		return strings.Replace(strings.Replace(ask, "{}", here, 1), "{}", there, 1)
	}
	p := planned(t, compile(t, assemble(
		[2]string{"user", `call first\ncall second\nret`},
		[2]string{"first", way("mov %esi,%edi", "mov %edi,%ecx")},
		[2]string{"second", way("mov %edi,%ecx", "mov %esi,%edi")}), "-O1"),
		planner.Options{Complete: true})
	prove(t, p)
	for _, name := range []string{"first", "second"} {
		r := routine(t, p, name)
		if s := r.Site(r.Entry); s == nil || s.Capture == nil || !slices.Equal(s.Capture.Jumps,
			[]int{2}) {
			t.Errorf("%s: the first event is %+v; want one that decides the first jump of its "+
				"value alone", name, s)
		}
	}
}
