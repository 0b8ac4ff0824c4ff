package jumptable_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/cfg/jumptable"
	"wpptrace/loader/x86"
)

// cases are what a table's entries lead to: caseAt and so many bytes more.
func cases(offsets ...uint64) (list []uint64) {
	for _, o := range offsets {
		list = append(list, caseAt+o)
	}
	return list
}

func TestResolve(t *testing.T) {
	const enough = 10_000
	unchecked := slices.Concat(slices.Repeat([]byte{0x90}, 5), switchOn[5:])
	checked := absint.Check{Index: x86.Operand{Reg: x86.RDI, Base: -1, Index: -1,
		Scale: 1, Size: 4}}
	edi := []byte{0xff, 0xe7} // jmp *%rdi
	for _, c := range []struct {
		name      string
		code      []byte
		entries   []uint64
		named     []uint64
		want      *jumptable.Table
		targets   []uint64
		contested []uint64
	}{
		{name: "as many entries as the check lets in", code: switchOn,
			entries: cases(0, 1, 2, 3, 0, 1), named: []uint64{tableAt + 16},
			want:    &jumptable.Table{Indexed: true, Check: checked},
			targets: cases(0, 1, 2, 3)},
		{name: "two entries that lead to one case", code: switchOn,
			entries: cases(2, 0, 2, 1), want: &jumptable.Table{Indexed: true, Check: checked},
			targets: cases(2, 0, 2, 1)},
		{name: "no check: all that lead into the routine", code: unchecked,
			entries: cases(0, 1, 2, 3), named: []uint64{tableAt},
			want:    &jumptable.Table{Indexed: true, Check: absint.NoCheck},
			targets: cases(0, 1, 2, 3)},
		{name: "an entry that leads amid another routine", code: switchOn,
			entries: append(cases(0, 1), otherAt+1, caseAt), contested: []uint64{otherAt + 1}},
		{name: "an entry that leads to no instruction", code: switchOn,
			entries: append(cases(0, 1), codeAt+1, caseAt)},
		{name: "a table that seems longer than the check says: the check is not its own",
			code:    switchOn,
			entries: cases(0, 1, 2, 3, 0), targets: cases(0, 1, 2, 3, 0),
			want: &jumptable.Table{Indexed: true, Check: absint.NoCheck}},
		{name: "a pointer that the routine was called with", code: edi,
			want: &jumptable.Table{Tail: true, Check: absint.NoCheck}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProgram(c.code, c.entries...)
			p.named = c.named
			in, jumps := p.input(enough)
			found, contested := jumptable.Resolve(in, jumps)
			last := in.Blocks[jumps[0]].First + in.Blocks[jumps[0]].Count - 1
			if c.want != nil {
				c.want.Targets = p.find(c.targets)
			}
			if d := cmp.Diff(c.want, found[last],
				cmpopts.IgnoreUnexported(jumptable.Table{})); d != "" {
				t.Errorf("table (-want +got):\n%s", d)
			}
			if d := cmp.Diff(p.find(c.contested), contested); d != "" {
				t.Errorf("contested (-want +got):\n%s", d)
			}
		})
	}
}

// TestSteps: what the search executes is taken off the steps that are left.
func TestSteps(t *testing.T) {
	const steps = 10_000
	in, jumps := newProgram(switchOn, cases(0, 1, 2, 3)...).input(steps)
	jumptable.Resolve(in, jumps)
	if left := in.Steps.Load(); left >= steps || left < 0 {
		t.Errorf("%d steps left of %d", left, steps)
	}
}

// TestOrigins: a register holds what the routine was called with, or what it has made.
func TestOrigins(t *testing.T) {
	in, jumps := newProgram(switchOn, cases(0, 1, 2, 3)...).input(10_000)
	values := jumptable.New(in)
	for reg, want := range map[int8]bool{x86.RDI: false, x86.RDX: true} {
		b := jumps[0]
		got := false
		known := values.Origins(reg, b, in.Blocks[b].Count, func(_ absint.Value, own bool) bool {
			got = own
			return true
		})
		if !known || got != want {
			t.Errorf("register %d: known %v, the routine's own %v, want %v", reg, known, got, want)
		}
	}
}

// find are the numbers of the instructions at some addresses.
func (p *program) find(addrs []uint64) (insns []int) {
	for _, a := range addrs {
		insns = append(insns, p.Find(a))
	}
	return insns
}
