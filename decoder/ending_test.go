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

// ended has functions that code which is not observed may call, and functions that these alone do.
// A nop is where a thread ends; before it, none of them makes a word.
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

// A script is a sink that spells what it is told.
type script struct {
	p     *plan.Plan
	lines []string
}

func (s *script) EnterRoutine(r int)          { s.add("enter %s", s.p.Routines[r].Name) }
func (s *script) LeaveRoutine()               { s.add("leave") }
func (s *script) NewPath(int, uint64, uint64) { s.add("path") }
func (s *script) Mark(m ops.Mark, n uint64)   { s.add("#%s", m) }
func (s *script) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// placeOf is where a routine begins.
func placeOf(p *plan.Plan, name string) uint64 {
	r := p.Routines[slices.IndexFunc(p.Routines, func(r *plan.Routine) bool { return r.Name == name })]
	return r.Addr + r.Offset()
}

// A thread that ends before its first word is taken to have begun in the one function that can lead
// there, and to be a handler for all that is known.
func TestThreadsThatEndBeforeTheirFirstWord(t *testing.T) {
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
		{"in what is called", behind("first", 9), "#cut, enter first, path, enter inner, path, leave"},
		{"in what that calls", behind("inner", 2), "#cut, enter first, path, enter inner, path, #cut"},
		{"in what two call", behind("both", 2), "#cut"},
		{"where one begins, and another may have ended", behind("first", 0), "#cut"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := decoder.New(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{p: p}
			thread := d.Thread(s)
			thread.Word(wire.MakeEnd(wire.Inside, c.at))
			thread.Close()
			if d := cmp.Diff(c.want, strings.Join(s.lines, ", ")); d != "" {
				t.Error(d)
			}
		})
	}
	for at, want := range map[uint64]bool{behind("inner", 2): true, behind("apart", 1): false} {
		d, err := decoder.New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		record := make([]byte, wire.BatchHeader+8)
		record[4] = 1
		binary.LittleEndian.PutUint64(record[wire.BatchHeader:], uint64(wire.MakeEnd(wire.Inside, at)))
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.HasRun(b); got != want {
			t.Errorf("a thread that ends at %x has run what is observed: %v", at, got)
		}
	}
}

// TestCutAfterTheLastPath: where no one way leads to a thread's end, the mark that says so came before
// the path that ran last.
func TestCutAfterTheLastPath(t *testing.T) {
	p, err := assemble(t.TempDir(), ended)
	if err != nil {
		t.Fatal(err)
	}
	d, err := decoder.New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	site := slices.IndexFunc(p.Sites, func(s plan.Site) bool { return p.Routines[s.Routine].Name == "first" && s.First })
	s := &script{p: p}
	thread := d.Thread(s)
	thread.Word(wire.MakeFrom(wire.Outside, 0))
	thread.Word(wire.MakeWitness(site, 0, 0x7ffc0000))
	thread.Word(wire.MakeEnd(wire.Inside, placeOf(p, "second")+4))
	thread.Close()
	if got := strings.Join(s.lines, ", "); !strings.HasSuffix(got, "path, #cut") || strings.Contains(got, "#cut, path") {
		t.Error(got)
	}
}
