package decoder_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// unseenAt is where the activation is in which what is not seen comes.
const unseenAt = 0x7ffc0000

// begun are the events with which a routine that external code calls begins, at cfa.
func begun(p *plan.Plan, name string, cfa uint64) []wire.Event {
	return []wire.Event{wire.MakeCaller(wire.Outside, 0), wire.MakeHit(firstSite(p, name), 0, cfa)}
}

// handler faults, or has an event at once.
const handler = `
	function handler
		nop
		nop
		probed
		ret
		.cfi_endproc
	`

// TestUnseenBeforeAnEnd: a thread ends, or a handler comes, where what led there is not known. What
// did not run was recorded, or what ran was missing, without a mark.
func TestUnseenBeforeAnEnd(t *testing.T) {
	const thrown = `
	function root
		framed
		call each@plt
		nop
		call helper
		probed
		leave
	hidden helper
		framed
		call strlen@plt
		leave
	function back
		framed
		call thrower@plt
		probed
		leave
	`
	calledBack := func(p *plan.Plan) []wire.Event {
		return append(begun(p, "root", unseenAt), begun(p, "back", unseenAt-128)...)
	}
	helps := func(p *plan.Plan) uint64 { return placeOf(p, "helper") + 9 }
	for name, c := range map[string]struct {
		code   string
		events func(p *plan.Plan) []wire.Event
		want   string
	}{
		"killed in a function of a library, before a call through a pointer": {`
	function root
		framed
		test %edi, %edi
		je 1f
		mov %ecx, (%rdx)
	1:	call free@plt
		mov (%rcx), %rbx
		call *%rbx
		mov (%rcx), %rbx
		leave
	`, func(p *plan.Plan) []wire.Event {
			return append(begun(p, "root", unseenAt), wire.MakeEnd(wire.Killed, 0))
		}, "enter root, path, #cut, #cut"},
		"behind what a library has thrown and caught": {thrown, func(p *plan.Plan) []wire.Event {
			return slices.Concat(calledBack(p), faultAt(unseenAt-40),
				[]wire.Event{wire.MakeEnd(wire.ReturnsToImage, helps(p))})
		}, "enter root, path, enter back, path, #cut"},
		"and a handler comes": {thrown, func(p *plan.Plan) []wire.Event {
			return slices.Concat(calledBack(p), faultAt(unseenAt-40),
				[]wire.Event{wire.MakeCaller(wire.ReturnsToImage, helps(p)),
					wire.MakeHit(firstSite(p, "on"), 0, unseenAt-4096)})
		}, "enter root, path, enter back, path, #handler, enter on, #cut, path, #cut"},
		"met in what has been called back": {thrown, func(p *plan.Plan) []wire.Event {
			return slices.Concat([]wire.Event{wire.MakeResync(wire.Outside, 0),
				wire.MakeHit(firstSite(p, "back"), 0, unseenAt-128)},
				faultAt(unseenAt-40), []wire.Event{wire.MakeEnd(wire.ReturnsToImage, helps(p))})
		}, "#resume, path, #cut"},
		"its handler dies": {`
	function root
		framed
		call nothing@plt
		nop
		call strlen@plt
		nop
		call nothing@plt
		leave
	` + handler, func(p *plan.Plan) []wire.Event {
			return slices.Concat(begun(p, "root", unseenAt),
				[]wire.Event{wire.MakeFault(unseenAt - 24)}, registersAt(unseenAt-4096-8),
				[]wire.Event{wire.MakeEnd(wire.Inside, placeOf(p, "handler")+1)})
		}, "enter root, path, #cut"},
		"its handler dies in what has been called": {`
	function root
		framed
		call nothing@plt
		call work
		mov (%rcx), %rbx
		call *%rbx
		mov (%rcx), %rbx
		leave
	hidden work
		framed
		probed
		call strlen@plt
		nop
		leave
	` + handler, func(p *plan.Plan) []wire.Event {
			return slices.Concat(begun(p, "root", unseenAt),
				[]wire.Event{wire.MakeCaller(wire.Inside, placeOf(p, "root")+14),
					wire.MakeHit(firstSite(p, "work"), 0, unseenAt-16),
					wire.MakeFault(unseenAt - 40)},
				registersAt(unseenAt-4096-8),
				[]wire.Event{wire.MakeEnd(wire.Inside, placeOf(p, "handler")+1)})
		}, "enter root, path, path, enter work, path, #cut, #cut"},
		"it has said nothing but that it faults": {handler, func(p *plan.Plan) []wire.Event {
			return []wire.Event{wire.MakeFault(unseenAt - 24), wire.MakeEnd(wire.Killed, 0)}
		}, "#cut"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := assemble(t.TempDir(), asm+c.code)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, decoded(t, p, c.events(p)...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestLeftOutDies: a routine that is left out faults, called without an event. Its caller was said
// to have gone on, and returned.
func TestLeftOutDies(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		probed
		call odd
		leave
	hidden odd
		framed
		mov %rdi, %rax
		and $-64, %rsp
		.cfi_def_cfa_register 2
		nop
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	odd := p.Containing(placeOf(p, "odd"))
	if odd.Traced() {
		t.Fatal("odd is traced")
	}
	registers := registersAt(unseenAt - 64)
	for name, events := range map[string][]wire.Event{
		"there": append(registers,
			wire.MakeEnd(wire.Inside, odd.Addr+7)),
		"in a handler that has come there": append(registers,
			wire.MakeCaller(wire.Handler, odd.Addr+7), wire.MakeEnd(wire.Outside, 0)),
	} {
		if d := cmp.Diff("enter root, path, #cut, #cut",
			decoded(t, p, append(begun(p, "root", unseenAt), events...)...)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestCalledBackAndLeft: what is called back faults before its first event, and a handler of a
// library jumps out of it, to the library. It was missing without a mark.
func TestCalledBackAndLeft(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		call guarded@plt
		probed
		leave
	function back
		framed
		mov %eax, (%rdi)
		probed
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	last := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return p.Routines[s.Routine].Name == "root" && !s.First })
	events := slices.Concat(begun(p, "root", unseenAt), registersAt(unseenAt-128-16),
		[]wire.Event{wire.MakeInterrupt(placeOf(p, "back") + 4), wire.MakeHit(last, 0, unseenAt)})
	if d := cmp.Diff("enter root, path, #cut, path, #cut", decoded(t, p, events...)); d != "" {
		t.Error(d)
	}
}

// TestLeftByAHandlerOfAHandler: a function that has called setjmp calls free without an event,
// which aborts; the handler faults before its first event, and the handler of that, a library's,
// jumps back to setjmp. Several ways lead to what has faulted from the function's caller as well,
// so that the function was taken to have returned: the decoder panicked at the second return of its
// setjmp.
func TestLeftByAHandlerOfAHandler(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		call nothing@plt
		call attempt
		mov (%rcx), %rbx
		call *%rbx
		mov (%rcx), %rbx
		leave
	hidden attempt
		framed
		call _setjmp@plt
		test %eax, %eax
		jne 2f
		cmp %esi, %edi
		je 1f
		mov %ecx, (%rdx)
	1:	call free@plt
		mov (%rcx), %rbx
	2:	leave
	`+handler)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return p.Routines[s.Routine].Name == "attempt" })
	said := func(site,
		outcome int) wire.Event {
		return wire.MakeHit(first+site, outcome, unseenAt-16)
	}
	events := slices.Concat(begun(p, "root", unseenAt),
		[]wire.Event{wire.MakeCaller(wire.Inside, placeOf(p, "root")+14), said(0, 0), said(1, 0),
			said(2, 1)},
		registersAt(unseenAt-4096-8), []wire.Event{wire.MakeInterrupt(placeOf(p, "handler") + 1),
			said(1, 1)})
	if d := cmp.Diff("enter root, path, path, enter attempt, path, path, #cut, path, #cut",
		decoded(t, p, events...)); d != "" {
		t.Error(d)
	}
}

// TestFaultedJump: a tail jump through a pointer in memory faults, after its hit. It was said to
// have been made, behind the handler that came for it or without a mark, where the process ended by
// that.
func TestFaultedJump(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		jmp *8(%rdi)
		.cfi_endproc
	`)
	if err != nil {
		t.Fatal(err)
	}
	jump := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return p.Routines[s.Routine].Blocks[s.Block].End == cfg.TailInd })
	if jump < 0 {
		t.Fatal("the jump has no probe")
	}
	at := p.Sites[jump].Addr
	begun, registers := begun(p, "root", unseenAt), registersAt(unseenAt-8)
	handled := slices.Concat(begun, registers,
		[]wire.Event{wire.MakeFaulted(wire.MakeInterrupt(at))},
		registers, []wire.Event{wire.MakeCaller(wire.Handler, at),
			wire.MakeHit(firstSite(p, "on"), 0, unseenAt-4096)})
	end := wire.MakeEnd(wire.Outside, 0)
	for name, c := range map[string]struct {
		events []wire.Event
		want   string
	}{
		"the process dies": {slices.Concat(begun, registers,
			[]wire.Event{wire.MakeFaulted(wire.MakeEnd(wire.Inside, at))}), "enter root"},
		"it has jumped": {slices.Concat(begun, []wire.Event{end}), "enter root, path, leave"},
		"a handler ends it": {slices.Concat(handled, []wire.Event{end}),
			"enter root, #handler, enter on, path, leave"},
		"it runs again": {slices.Concat(handled, []wire.Event{begun[1], end}),
			"enter root, #handler, enter on, path, leave, path, leave"},
	} {
		if d := cmp.Diff(c.want, decoded(t, p, c.events...)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestKilledAtAHit: a thread is killed where a single-stepped probe has been hit, as it is most of
// the time in such a loop. It was said to have gone round once more.
func TestKilledAtAHit(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	.macro dispatch
		movzbl (%rbx), %edi
		add $1, %rbx
		and $3, %edi
		mov %edi, %eax
		mov (%rdx,%rax,8), %rax
		jmp *%rax
	.endm
	function root
		framed
		lea tab(%rip), %rdx
		dispatch
	2:	add $1, %rcx
		dispatch
	3:	add $2, %rcx
		dispatch
	5:	leave
		.section .data.rel.ro,"aw"
		.balign 8
	tab:	.quad 2b, 3b, 5b, 2b
		.text
	`)
	if err != nil {
		t.Fatal(err)
	}
	around := slices.IndexFunc(p.Sites, func(s plan.Site) bool {
		r := p.Routines[s.Routine]
		return s.Stepped && r.Name == "root" && slices.Contains(r.Blocks[s.Block].Succ, s.Block)
	})
	if around < 0 {
		t.Fatal("no loop with a probe that is single-stepped")
	}
	events := slices.Concat(begun(p, "root", unseenAt),
		[]wire.Event{wire.MakeHit(around, 0, unseenAt)},
		registersAt(unseenAt-16), []wire.Event{wire.MakeEnd(wire.Inside, p.Sites[around].Addr)})
	if d := cmp.Diff("enter root, path, path, #cut, path, #cut",
		decoded(t, p, events...)); d != "" {
		t.Error(d)
	}
}
