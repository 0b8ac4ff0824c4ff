package decoder_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
)

// asm begins a program in assembly: what code is in it is of functions, hidden ones and a handler,
// on.
const asm = `
	.macro function name
	.globl \name
	.type \name, @function
	\name:	.cfi_startproc
	.endm
	.macro hidden name
	.type \name, @function
	\name:	.cfi_startproc
	.endm
	.macro framed
		sub $8, %rsp
		.cfi_def_cfa_offset 16
	.endm
	.macro leave
		add $8, %rsp
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
	.endm
	.macro probed
		test %edi, %edi
		je 1f
		nop
	1:
	.endm
	.text
	function on
		probed
		ret
		.cfi_endproc
	`

// calling calls functions that neither call back nor throw: in length, in the place of
// length_last's return, and twice in both.
const calling = asm + `
	function root
		framed
		test %edi, %edi
		je 1f
		call length
		nop
	1:	call length_last
		nop
		call both
		leave
	hidden length
		framed
		call strlen@plt
		leave
	hidden length_last
		jmp strlen@plt
		.cfi_endproc
	hidden both
		framed
		call strlen@plt
		call strlen@plt
		leave
	`

// TestInterruptedInWhatIsCalled: a function of a library that neither calls back nor throws faults.
// Where it was called is known by its return address, if its stack pointer points to that: the
// thread was said to have returned from all that led there, main included, and then a handler to
// have come, or nothing was said of what had led there.
func TestInterruptedInWhatIsCalled(t *testing.T) {
	p, err := assemble(t.TempDir(), calling)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt, handlerAt = 0x7ffc0000, 0x7ff00000
	const calledAt = rootAt - 16 // the CFA of what root calls
	behind := func(name string, bytes uint64) uint64 { return placeOf(p, name) + bytes }
	handler := wire.MakeHit(firstSite(p, "on"), 0, handlerAt)
	for _, c := range []struct {
		name           string
		returns        uint64
		rsp            uint64
		handled, ended string // with a handler; at the thread's end
	}{
		{"called", behind("length", 9), calledAt - 24,
			"enter root, path, enter length, path, #handler, enter on, path, #cut",
			"enter root, path, enter length, path"},
		{"called last", behind("root", 19), calledAt - 8,
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, " +
				"leave, #handler, enter on, path, #cut",
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, " +
				"leave"},
		{"the second of two", behind("both", 14), calledAt - 24,
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, " +
				"leave, path, enter both, path, path, #handler, enter on, path, #cut",
			"enter root, path, enter length, path, path, leave, path, enter length_last, path, " +
				"leave, path, enter both, path, path"},
		{"by another activation, as it seems", behind("length", 9), calledAt - 56,
			"enter root, path, #cut, #handler, enter on, #cut, path, #cut, #unwind, leave",
			"enter root, path, #cut, #cut"},
		{"nowhere, as it seems", behind("on", 2), calledAt - 24,
			"enter root, path, #cut, #handler, enter on, #cut, path, #cut, #unwind, leave",
			"enter root, path, #cut, #cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := []wire.Event{wire.MakeCaller(wire.Outside, 0),
				wire.MakeHit(firstSite(p, "root"), 0, rootAt)}
			registers := registersAt(c.rsp)
			for end, want := range map[wire.Event]string{
				wire.MakeCaller(wire.ReturnsToImage, c.returns): c.handled,
				wire.MakeEnd(wire.ReturnsToImage, c.returns):    c.ended,
			} {
				said := slices.Concat(events, registers, []wire.Event{end})
				if end.Kind() == wire.Caller {
					said = append(said, handler)
				}
				if d := cmp.Diff(want, decoded(t, p, said...)); d != "" {
					t.Errorf("%v: %s", end, d)
				}
			}
		})
	}
}

// TestCalledThroughWhatMayCallBack: a function of a library was called with a return address that
// two ways lead to, or one by what external code has called back. What is not certain was recorded
// as if it were, or missing without a mark.
func TestCalledThroughWhatMayCallBack(t *testing.T) {
	const rootAt, handlerAt = 0x7ffc0000, 0x7ff00000
	for _, c := range []struct {
		name, code     string
		returns        string // the routine in which, with a frame, strlen is called at once
		rsp            uint64
		handled, ended string
	}{
		{"in one of two calls", "call sched_yield@plt\n call inner\n nop\n call inner\n", "inner",
			rootAt - 16 - 24,
			"enter root, path, #handler, enter on, #cut, path, #cut", "enter root, path, #cut"},
		{"called back", "call each@plt\n", "back", rootAt - 16 - 24 - 512,
			"enter root, path, enter back, path, #handler, enter on, path, #cut",
			"enter root, path, enter back, path"},
		{"called back, or called", "call each@plt\n call other_back\n", "other_back",
			rootAt - 16 - 24,
			"enter root, path, #handler, enter on, #cut, path, #cut", "enter root, path, #cut"},
		{"called, not back", "call each@plt\n call inner\n", "inner", rootAt - 16 - 24,
			"enter root, path, path, enter inner, path, #handler, enter on, path, #cut",
			"enter root, path, path, enter inner, path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		`+c.code+`
		test %eax, %eax
		je 1f
		nop
	1:	leave
	hidden inner
		framed
		call strlen@plt
		leave
	function back
		framed
		call strlen@plt
		probed
		leave
	hidden other_back
		framed
		call strlen@plt
		probed
		leave
		.data
		.quad other_back
	`)
			if err != nil {
				t.Fatal(err)
			}
			returns, registers := placeOf(p, c.returns)+9, faultAt(c.rsp)
			events := append([]wire.Event{wire.MakeCaller(wire.Outside, 0),
				wire.MakeHit(firstSite(p, "root"), 0, rootAt)}, registers...)
			if d := cmp.Diff(c.handled,
				decoded(t, p, append(events, wire.MakeCaller(wire.ReturnsToImage, returns),
					wire.MakeHit(firstSite(p, "on"), 0, handlerAt))...)); d != "" {
				t.Errorf("a handler: %s", d)
			}
			if d := cmp.Diff(c.ended,
				decoded(t, p, append(events, wire.MakeEnd(wire.ReturnsToImage, returns))...)); d !=
				"" {
				t.Errorf("the end: %s", d)
			}
			leftOver := slices.DeleteFunc(append(slices.Clone(events),
				wire.MakeEnd(wire.ReturnsToImage, returns)),
				func(w wire.Event) bool { return w.Kind() == wire.Fault })
			want := c.ended
			if c.returns == "back" {
				want = "enter root, path, #cut"
			}
			if d := cmp.Diff(want, decoded(t, p, leftOver...)); d != "" {
				t.Errorf("the end without a fault: %s", d)
			}
		})
	}
}

// TestHandlerInWhatIsJumpedTo: external code, to which a routine has jumped, is interrupted,
// and calls back then: what has called that routine has not returned before. It was said to have.
func TestHandlerInWhatIsJumpedTo(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		call middle
		probed
		leave
	hidden middle
		framed
		call last
		leave
	hidden last
		jmp each@plt
		.cfi_endproc
	function back
		probed
		ret
		.cfi_endproc
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt, lastAt = 0x7ffc0000, 0x7ffc0000 - 32
	behindLast, behindMiddle := placeOf(p, "middle")+9, placeOf(p, "root")+9
	events := []wire.Event{
		wire.MakeCaller(wire.Outside, 0), wire.MakeHit(firstSite(p, "root"), 0, rootAt),
		wire.MakeCaller(wire.Inside, behindLast), wire.MakeCaller(wire.Inside, behindMiddle),
		wire.MakeHit(firstSite(p, "last"), 0, lastAt),
	}
	back := []wire.Event{wire.MakeCaller(wire.Outside, 0),
		wire.MakeHit(firstSite(p, "back"), 0, rootAt-256)}
	handler := wire.MakeHit(firstSite(p, "on"), 0, rootAt-4096)
	const want = "enter root, path, enter middle, path, enter last, path, leave, #handler, enter " +
		"on, path, leave, enter back, path, #cut"
	for _, from := range [][]wire.Event{append(registersAt(lastAt-8),
		wire.MakeCaller(wire.ReturnsToImage, behindLast)),
		{wire.MakeCaller(wire.HandlerOutside, 0)}} {
		if d := cmp.Diff(want,
			decoded(t, p, slices.Concat(events, from, []wire.Event{handler}, back)...)); d != "" {
			t.Errorf("%v: %s", from[len(from)-1], d)
		}
	}
}

// TestBehindAHandler: a handler without an event has come since the last event. What came
// then in external code was taken to show that the thread had gone on.
func TestBehindAHandler(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		probed
		mov %eax, (%rdi)
		call strlen@plt
		probed
		leave
	function handler
		framed
		call strlen@plt
		probed
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt = 0x7ffc0000
	r := p.Routines[slices.IndexFunc(p.Routines,
		func(r *plan.Routine) bool { return r.Name == "root" })]
	store := slices.IndexFunc(r.Blocks, func(b cfg.Block) bool { return b.Lo == r.Addr+9 })
	events := []wire.Event{wire.MakeCaller(wire.Outside, 0),
		wire.MakeHit(firstSite(p, "root"), 0, rootAt)}
	events = append(append(events, registersAt(rootAt-16)...),
		wire.MakeInterrupt(r.Blocks[store].Lo+r.Offset()))
	killed := []wire.Event{wire.MakeEnd(wire.Killed, 0)}
	for _, c := range []struct {
		name string
		then []wire.Event
		want string
	}{
		{"it is killed", killed, "enter root, path, #cut, #cut"},
		{"it dies in what the handler calls",
			append(registersAt(rootAt-4096-24),
				wire.MakeEnd(wire.ReturnsToImage, placeOf(p, "handler")+9)),
			"enter root, path, #cut, #cut"},
		{"it dies in what root calls",
			append(registersAt(rootAt-16-8),
				wire.MakeEnd(wire.ReturnsToImage, r.Blocks[store].Hi+r.Offset())),
			"enter root, path, #cut, path"},
		{"another handler comes in that, and it is killed",
			append(append(registersAt(rootAt-4096), wire.MakeInterrupt(1)), killed...),
			"enter root, path, #cut, #cut"},
		{"another handler comes, and is killed",
			append([]wire.Event{wire.MakeCaller(wire.HandlerOutside, 0),
				wire.MakeHit(firstSite(p, "on"), 0, rootAt-4096)}, killed...),
			"enter root, path, #cut, #handler, enter on, path, leave, #cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want,
				decoded(t, p, append(slices.Clone(events), c.then...)...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCalledBackBehindAHandler: what a handler without an event has called back is interrupted.
// It was said to have been called back by what had returned before.
func TestCalledBackBehindAHandler(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		call each@plt
		mov %eax, (%rdi)
		test %eax, %eax
		je 1f
		nop
	1:	leave
	function back
		framed
		call strlen@plt
		probed
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt, backAt = 0x7ffc0000, 0x7ffc0000 - 4096
	begin := []wire.Event{wire.MakeCaller(wire.Outside, 0),
		wire.MakeHit(firstSite(p, "root"), 0, rootAt)}
	comes := append(registersAt(rootAt-16), wire.MakeInterrupt(placeOf(p, "root")+9))
	within := append(registersAt(backAt-16), wire.MakeCaller(wire.Handler, placeOf(p, "back")+4),
		wire.MakeHit(firstSite(p, "on"), 0, rootAt-8192))
	for name, c := range map[string]struct {
		events []wire.Event
		want   string
	}{
		"no handler": {slices.Concat(begin, within),
			"enter root, path, enter back, path, #cut, #handler, enter on, path, #cut"},
		"a handler": {slices.Concat(begin, comes, within),
			"enter root, path, #handler, enter on, #cut, path, #cut"},
	} {
		if d := cmp.Diff(c.want, decoded(t, p, c.events...)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestMainHasNotRun: a thread dies in strlen, in what main calls, after what runs before main has
// had an event. What else may have been called back was said to have run, as if main had; or main
// was missing, without a mark.
func TestMainHasNotRun(t *testing.T) {
	const startAt = 0x7ffc0000
	for _, c := range []struct {
		name, code, want string
		before           []string // what has had an event, besides start
	}{
		{"it alone may have been", "", "enter start, path, enter main, path, enter inner, path",
			nil},
		{"behind a constructor", "", "enter start, path, enter before, path, leave, enter main, " +
			"path, enter inner, path", []string{"before"}},
		{"or a callback", "function back\n framed\n call inner\n probed\n leave\n",
			"enter start, path, #cut", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := assemble(t.TempDir(), asm+`
	function start
		framed
		call each@plt
		leave
	function before
		framed
		probed
		leave
	function main
		framed
		call inner
		probed
		leave
	hidden inner
		framed
		call strlen@plt
		nop
		leave
	`+c.code)
			if err != nil {
				t.Fatal(err)
			}
			var events []wire.Event
			for i, name := range append([]string{"start"}, c.before...) {
				events = append(events, wire.MakeCaller(wire.Outside, 0),
					wire.MakeHit(firstSite(p, name), 0, startAt-uint64(128*i)))
			}
			events = append(append(events, faultAt(startAt-512-16-24)...),
				wire.MakeEnd(wire.ReturnsToImage, placeOf(p, "inner")+9))
			if d := cmp.Diff(c.want, decoded(t, p, events...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCalledOnAStackInAFrame: a handler on a stack that lies in the frame of what has been
// interrupted dies in strlen before its first event. It was missing without a mark.
func TestCalledOnAStackInAFrame(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		sub $0x4008, %rsp
		.cfi_def_cfa_offset 0x4010
		call raise@plt
		test %eax, %eax
		je 1f
		nop
	1:	add $0x4008, %rsp
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
	function on_stack
		framed
		call strlen@plt
		probed
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt = 0x7ffc0000
	begin := []wire.Event{wire.MakeCaller(wire.Outside, 0),
		wire.MakeHit(firstSite(p, "root"), 0, rootAt)}
	end := []wire.Event{wire.MakeEnd(wire.ReturnsToImage, placeOf(p, "on_stack")+9)}
	for at, want := range map[uint64]string{
		rootAt - 0x1000: "enter root, path, #cut",
		rootAt - 0x8000: "enter root, path, enter on_stack, path",
	} {
		if d := cmp.Diff(want,
			decoded(t, p, slices.Concat(begin, faultAt(at-24), end)...)); d != "" {
			t.Errorf("at %x: %s", at, d)
		}
	}
}

// A callers is a sink that lists what began activations.
type callers struct {
	script
	list []ops.Caller
}

func (c *callers) EnterRoutine(_ int, by ops.Caller) { c.list = append(c.list, by) }

// TestCalledThroughAPointerAndInterrupted: what is interrupted before its first event, and has no
// return address that is known, was called by the call where its caller stands if it is where that
// has put a return address, and by external code if it is further down.
func TestCalledThroughAPointerAndInterrupted(t *testing.T) {
	p, err := assemble(t.TempDir(), asm+`
	function root
		framed
		call *%rax
		test %eax, %eax
		je 1f
		nop
	1:	leave
	function back
		framed
		call strlen@plt
		probed
		leave
	`)
	if err != nil {
		t.Fatal(err)
	}
	const rootAt = 0x7ffc0000
	for backAt, by := range map[uint64]ops.Caller{
		rootAt - 16:       ops.Traced,
		rootAt - 16 - 512: ops.External,
	} {
		d, err := decoder.New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		sink := &callers{script: script{p: p}}
		thread := d.Thread(sink, true)
		for _, w := range slices.Concat([]wire.Event{wire.MakeCaller(wire.Outside, 0),
			wire.MakeHit(firstSite(p, "root"), 0, rootAt)}, faultAt(backAt-24),
			[]wire.Event{wire.MakeEnd(wire.ReturnsToImage, placeOf(p, "back")+9)}) {
			thread.Take(w)
		}
		thread.Close()
		if d := cmp.Diff([]ops.Caller{ops.External, by}, sink.list); d != "" {
			t.Errorf("%x below root: %s", rootAt-backAt, d)
		}
	}
}

// faultAt are the events of a fault in external code: those of registers last.
func faultAt(rsp uint64) []wire.Event {
	return append([]wire.Event{wire.MakeFault(rsp)}, registersAt(rsp)...)
}

// registersAt are the events of registers of which rsp alone holds something.
func registersAt(rsp uint64) (events []wire.Event) {
	for _, number := range wire.Registers {
		value := uint64(0)
		if number == 4 {
			value = rsp
		}
		events = append(events, wire.MakeRegister(value))
	}
	return events
}
