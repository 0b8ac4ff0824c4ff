//go:build linux && cgo

package decoder_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/loader/plan"
)

// ended has functions that external code may call, and functions that these alone do.
// A nop is where a thread ends; before it, none of them makes an event.
const ended = `
	.macro function name
	.type \name, @function
	\name:	.cfi_startproc
	.endm
	.globl first, second
	.text
	function first
		sub $8, %rsp
		.cfi_def_cfa_offset 16
		call inner
		nop
		call both
		add $8, %rsp
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
	function second
		sub $8, %rsp
		.cfi_def_cfa_offset 16
		call both
		add $8, %rsp
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
	function inner
		xor %eax, %eax
		nop
		ret
		.cfi_endproc
	function both
		xor %ecx, %ecx
		nop
		ret
		.cfi_endproc
	function apart
		nop
		mov (%rsp), %rax
		mov %rax, (%rsp)
		ret
		.cfi_endproc
	`

// A script is a sink that spells what it is given.
type script struct {
	p     *plan.Plan
	lines []string
}

func (s *script) EnterRoutine(r int, _ ops.Caller) { s.add("enter %s", s.p.Routines[r].Name) }
func (s *script) LeaveRoutine()                    { s.add("leave") }
func (s *script) NewPath(int, uint64, uint64)      { s.add("path") }
func (s *script) Mark(m ops.Mark, n uint64)        { s.add("#%s", m) }
func (s *script) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// decoded spells what is decoded of a thread of these events.
func decoded(t *testing.T, p *plan.Plan, events ...wire.Event) string {
	t.Helper()
	d, err := decoder.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{p: p}
	thread := d.Thread(s, true)
	for _, w := range events {
		thread.Take(w)
	}
	thread.Close()
	return strings.Join(s.lines, ", ")
}

// placeOf is where a routine begins.
func placeOf(p *plan.Plan, name string) uint64 {
	r := p.Routines[slices.IndexFunc(p.Routines,
		func(r *plan.Routine) bool { return r.Name == name })]
	return r.Addr + r.Offset()
}

// TestFault: a thread has ended by a fault if that was at an instruction of a traced routine.
func TestFault(t *testing.T) {
	p, err := assemble(t.TempDir(), ended)
	if err != nil {
		t.Fatal(err)
	}
	at := placeOf(p, "inner") + 2
	for _, c := range []struct {
		end  wire.Event
		want bool
	}{
		{wire.MakeFaulted(wire.MakeEnd(wire.Inside, at)), true},
		{wire.MakeEnd(wire.Inside, at), false},
		{wire.MakeFaulted(wire.MakeEnd(wire.Inside, 1)), false},
		{wire.MakeEnd(wire.Killed, 0), false},
	} {
		d, err := decoder.New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		thread := d.Thread(&script{p: p}, true)
		thread.Take(c.end)
		f, ok := thread.Fault()
		if ok != c.want || ok && (p.Routines[f.Routine].Name != "inner" ||
			f.Addr != p.Routines[f.Routine].Addr+2) {
			t.Errorf("%v: %+v, %t", c.end, f, ok)
		}
	}
}

// A thread that ends before its first event is taken to have begun in the one function that can
// lead there, and to be a handler for all that is known.
func TestThreadsThatEndBeforeTheirFirstEvent(t *testing.T) {
	p, err := assemble(t.TempDir(), ended)
	if err != nil {
		t.Fatal(err)
	}
	behind := func(name string, bytes uint64) uint64 { return placeOf(p, name) + bytes }
	for _, c := range []struct {
		name string
		at   uint64
		want string
	}{
		{"in what is called", behind("first", 9), "#cut, enter first, path, enter inner, path, " +
			"leave"},
		{"in what that calls", behind("inner", 2), "#cut, enter first, path, enter inner, path, " +
			"#cut"},
		{"in what two call", behind("both", 2), "#cut"},
		{"where one begins, and another may have ended", behind("first", 0), "#cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, decoded(t, p, wire.MakeEnd(wire.Inside, c.at))); d != "" {
				t.Error(d)
			}
		})
	}
	elsewhere := wire.MakeEnd(wire.Outside, 0)
	interrupted := "#cut, enter first, path, enter inner, path, #cut"
	if d := cmp.Diff(interrupted,
		decoded(t, p, wire.MakeInterrupt(behind("inner", 2)), elsewhere)); d != "" {
		t.Error(d)
	}
	for _, c := range []struct {
		events []wire.Event
		want   bool
	}{
		{[]wire.Event{wire.MakeEnd(wire.Inside, behind("inner", 2))}, true},
		{[]wire.Event{wire.MakeEnd(wire.Inside, behind("apart", 1))}, false},
		{[]wire.Event{elsewhere}, false},
		{[]wire.Event{wire.MakeInterrupt(behind("inner", 2)), elsewhere}, true},
		{[]wire.Event{wire.MakeInterrupt(behind("apart", 1)), elsewhere}, false},
		{[]wire.Event{wire.MakeCaller(wire.Handler, behind("inner", 2)), elsewhere}, true},
		{[]wire.Event{wire.MakeCaller(wire.Handler, behind("apart", 1)), elsewhere}, false},
	} {
		d, err := decoder.New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		record := make([]byte, wire.BatchHeader)
		record[4] = byte(len(c.events))
		for _, w := range c.events {
			record = binary.LittleEndian.AppendUint64(record, uint64(w))
		}
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.HasRun(b); got != c.want {
			t.Errorf("a thread that had the events %v has run what is traced: %v", c.events, got)
		}
	}
}

// A thread that ends in a handler of external code is taken to be where the handler came, unless
// that has called back what had the last event.
func TestThreadsThatEndInExternalHandlers(t *testing.T) {
	p, err := assemble(t.TempDir(), ended)
	if err != nil {
		t.Fatal(err)
	}
	site := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return p.Routines[s.Routine].Name == "first" && s.First })
	const rootAt = 0x7ffc0000 // the CFA of what external code calls
	begun := []wire.Event{wire.MakeCaller(wire.Outside, 0), wire.MakeHit(site, 0, rootAt)}
	for _, c := range []struct {
		name   string
		before []wire.Event
		rsp    uint64 // where the handler came
		want   string
	}{
		{"where no probe-free route leads from its last event", begun, rootAt - 24,
			"enter first, path, enter inner, path, leave, path, #cut"},
		{"before the first", nil, rootAt - 24, "#cut, enter first, path, enter inner, path, #cut"},
		{"that it has called back", begun, rootAt + 0x400,
			"enter first, path, enter inner, path, leave, path, enter both, path, leave, path, " +
				"leave, #cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			events := append(slices.Concat(c.before, registersAt(c.rsp)),
				wire.MakeCaller(wire.Handler, placeOf(p, "inner")+2), wire.MakeEnd(wire.Outside, 0))
			if d := cmp.Diff(c.want, decoded(t, p, events...)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestCutAfterTheLastPath: where no one way leads to a thread's end, the mark that says so came
// before the path that ran last.
func TestCutAfterTheLastPath(t *testing.T) {
	p, err := assemble(t.TempDir(), ended)
	if err != nil {
		t.Fatal(err)
	}
	site := slices.IndexFunc(p.Sites,
		func(s plan.Site) bool { return p.Routines[s.Routine].Name == "first" && s.First })
	got := decoded(t, p, wire.MakeCaller(wire.Outside, 0), wire.MakeHit(site, 0, 0x7ffc0000),
		wire.MakeEnd(wire.Inside, placeOf(p, "second")+4))
	if !strings.HasSuffix(got, "path, #cut") || strings.Contains(got, "#cut, path") {
		t.Error(got)
	}
}
