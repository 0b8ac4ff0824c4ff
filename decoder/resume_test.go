package decoder_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/loader/plan"
)

// TestMetInAHandler: a thread is met in a signal handler, and what that has interrupted, whose
// first event comes after it, stands in its middle: the handler came in it or in what it had
// called. Events were said not to fit the program, or a path from the routine's entry was made up.
func TestMetInAHandler(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
	1:	call work
		dec %ebx
		jne 1b
		leave
	hidden work
		framed
	1:	call mix
		add $1, %ecx
		cmp %ecx, %esi
		jne 1b
		leave
	hidden mix
		probed
		ret
		.cfi_endproc
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt, handlerAt = 0x7ffc0000, 0x7ffb0000
	const workAt = rootAt - 16
	loop := slices.IndexFunc(p.Sites, func(s plan.Site) bool {
		return p.Routines[s.Routine].Name == "work" && s.Condition != plan.NoCondition
	})
	if loop < 0 {
		t.Fatal("the loop of work has no probe")
	}
	for name, pc := range map[string]uint64{
		"in its middle":            placeOf(p, "work") + 9,
		"in what it calls":         placeOf(p, "mix") + 2,
		"where its own probe is":   p.Sites[loop].Addr,
		"at the call's first byte": placeOf(p, "work") + 4,
	} {
		got := decoded(t, p,
			wire.MakeResync(wire.Handler, pc), wire.MakeHit(firstSite(p, "on"), 0, handlerAt),
			wire.MakeCaller(wire.Inside, placeOf(p, "root")+9), wire.MakeHit(loop, 1, workAt))
		if strings.Contains(got, "enter") || !strings.Contains(got, "#resume") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
