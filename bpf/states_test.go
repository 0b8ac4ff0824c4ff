//go:build linux && cgo

package bpf_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/compress/wet/machine"
)

const noCell = uint8(bpf.TracerCellNO_CELL)

// step is a step whose operands that nobody names hold 0.
func step(op bpf.TracerLoadOp, s bpf.TracerLoadStep) bpf.TracerLoadStep {
	s.Op = uint8(op)
	for _, cell := range []*uint8{&s.A, &s.B} {
		if *cell == 0 {
			*cell = noCell
		}
	}
	return s
}

const (
	rcx, rdx, rsp, rdi = 1, 2, 4, 7
	opEnd              = bpf.TracerLoadOpLOAD_END
	opSum              = bpf.TracerLoadOpLOAD_SUM
	opFetch            = bpf.TracerLoadOpLOAD_FETCH
	opPick             = bpf.TracerLoadOpLOAD_PICK
	opBranch           = bpf.TracerLoadOpLOAD_BRANCH
	opSwitch           = bpf.TracerLoadOpLOAD_SWITCH
	opReturn           = bpf.TracerLoadOpLOAD_RETURN
	opLeave            = bpf.TracerLoadOpLOAD_LEAVE
)

// looks has a machine take states: at the site jump by outcome one of two programs, at all others
// nothing but registers.
func (r *rig) looks(programs ...[]bpf.TracerLoadStep) {
	r.Looks = make([]bpf.TracerLook, len(sites))
	for i := range r.Looks {
		r.Looks[i].Condition = sites[i].Condition
	}
	r.Steps = make([]bpf.TracerLoadStep, 1)
	for outcome, p := range programs {
		r.Looks[jump].First[outcome] = r.program(p...)
	}
}

// program adds a load program, and returns the index of its first step.
func (r *rig) program(steps ...bpf.TracerLoadStep) uint32 {
	first := uint32(len(r.Steps))
	r.Steps = append(append(r.Steps, steps...), step(opEnd, bpf.TracerLoadStep{}))
	return first
}

// states drains the thread and returns all states of all records.
func (r *rig) states(t interface{ Fatal(...any) }) (list []wire.State) {
	r.Drain(r.thread)
	for _, record := range r.Records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
	}
	return list
}

func TestLoadPrograms(t *testing.T) {
	fetch8 := step(opFetch, bpf.TracerLoadStep{A: rdi, Size: 8, Imm: 0x10})
	pointer := step(opPick, bpf.TracerLoadStep{A: 1, Dst: 18, Size: 8})
	pointer.A = 0
	for _, c := range []struct {
		name   string
		steps  []bpf.TracerLoadStep
		words  []uint64
		failed uint16
		left   bool
	}{
		{name: "nothing"},
		{name: "a field", steps: []bpf.TracerLoadStep{fetch8}, words: []uint64{0x3000}},
		{name: "what a field points to, half of it", steps: []bpf.TracerLoadStep{fetch8, pointer,
			step(opFetch, bpf.TracerLoadStep{A: 18, B: rcx, Scale: 3, Dst: 1, Size: 4})},
			words: []uint64{0x3000, 0x55667788}},
		{name: "two words and a byte", steps: []bpf.TracerLoadStep{
			step(opFetch, bpf.TracerLoadStep{Imm: 0x3008, Size: 9})},
			words: []uint64{0x1122334455667788, 0xee}},
		{name: "of the image and of the thread", steps: []bpf.TracerLoadStep{
			step(opFetch, bpf.TracerLoadStep{A: uint8(bpf.TracerCellCELL_BIAS), Size: 8}),
			step(opFetch, bpf.TracerLoadStep{A: uint8(bpf.TracerCellCELL_FS_BASE), Size: 8})},
			words: []uint64{0xe1f, 0xf5}},
		{name: "what cannot be read is nothing", steps: []bpf.TracerLoadStep{fetch8,
			step(opFetch, bpf.TracerLoadStep{Imm: 0x666000, Dst: 1, Size: 24}),
			step(opFetch, bpf.TracerLoadStep{Imm: 0x3010, Dst: 2, Size: 1})},
			words: []uint64{0x3000, 0, 0, 0, 0xee}, failed: 2},
		{name: "a branch", steps: []bpf.TracerLoadStep{
			step(opBranch, bpf.TracerLoadStep{A: rcx, Imm: 1, Size: 4, Condition: 4, Jump: 1}),
			step(opLeave, bpf.TracerLoadStep{}), fetch8}, words: []uint64{0x3000}},
		{name: "a branch that is not taken", steps: []bpf.TracerLoadStep{
			step(opBranch, bpf.TracerLoadStep{A: rcx, Imm: 1, Size: 4, Condition: 5, Jump: 1}),
			step(opLeave, bpf.TracerLoadStep{}), fetch8}, words: []uint64{0x3000}, left: true},
		{name: "steps that are left out", steps: []bpf.TracerLoadStep{
			step(opLeave, bpf.TracerLoadStep{Jump: 1}), fetch8,
			step(opSum, bpf.TracerLoadStep{Dst: 18, A: rdi, B: noCell, Size: 8, Jump: 2}),
			step(opLeave, bpf.TracerLoadStep{}), fetch8, fetch8}, words: []uint64{0x3000},
			left: true},
		{name: "a step that goes on at the end", steps: []bpf.TracerLoadStep{
			step(opSum, bpf.TracerLoadStep{Dst: 18, A: rdi, B: noCell, Size: 8,
				Jump: 1<<32 - 2}), fetch8}},
		{name: "a switch", steps: []bpf.TracerLoadStep{
			step(opSwitch, bpf.TracerLoadStep{A: rcx, Size: 8, Jump: 1}), fetch8},
			words: []uint64{0xca5e}},
		{name: "a switch without such a case", steps: []bpf.TracerLoadStep{
			step(opSwitch, bpf.TracerLoadStep{A: rcx, Imm: 1, Size: 8, Jump: 1}), fetch8},
			words: []uint64{0x3000}},
		{name: "behind a return", steps: []bpf.TracerLoadStep{
			step(opReturn, bpf.TracerLoadStep{A: rdx})}, words: []uint64{0xca5e}},
		{name: "a return to other code", steps: []bpf.TracerLoadStep{
			step(opReturn, bpf.TracerLoadStep{A: rsp}), fetch8}, left: true},
		{name: "no more than 16", steps: slices.Repeat([]bpf.TracerLoadStep{fetch8}, 17),
			words: slices.Repeat([]uint64{0x3000}, 16), left: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.looks(c.steps)
			there := r.program(step(opFetch, bpf.TracerLoadStep{Imm: 0x4000, Size: 8}))
			r.Cases = []uint32{0, 2, 0, there}
			r.After = map[uint64]uint32{0x1000: there}
			r.FSBase = 0x5000
			for at, word := range map[uint64]uint64{0x2010: 0x3000, 0x3008: 0x1122334455667788,
				0x3010: 0xee, 0x4000: 0xca5e, 0x5000: 0xf5, base: 0xe1f} {
				r.Memory.Set(at, word)
			}
			r.hit(jump, stack, register(rdi, 0x2000), register(rcx, 1), register(rdx, base+0x1000))
			list := r.states(t)
			if len(list) != 1 {
				t.Fatalf("%d states of one hit", len(list))
			}
			s := list[0]
			if diff := cmp.Diff(c.words, s.Words); diff != "" {
				t.Errorf("what is read differs (-want +got):\n%s", diff)
			}
			if s.FailedReads != c.failed || s.Left != c.left {
				t.Errorf("failed %b, left %v, want %b, %v", s.FailedReads, s.Left, c.failed, c.left)
			}
		})
	}
}

// TestStatesAreOfTheirHits compares what is sent beside what is read.
func TestStatesAreOfTheirHits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &rig{usermode.New(sites, calls, base, size), usermode.NewThread(42, 7, false)}
		defer r.thread.Free()
		r.looks()
		r.FSBase = rapid.Uint64().Draw(t, "fs base")
		extra := uint32(usermode.ExtraCookies)
		r.Looks = append(r.Looks, bpf.TracerLook{Condition: 5})
		var want []wire.State
		hits := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "hits") {
			var regs usermode.Registers
			for i := range regs.General {
				regs.General[i] = rapid.Uint64().Draw(t, "register")
			}
			bits := rapid.Uint64Range(0, 127).Draw(t, "flags")
			for i, place := range []int{0, 2, 4, 6, 7, 11, 10} {
				regs.Flags |= bits >> i & 1 << place
			}
			regs.Flags |= 1<<1 | 1<<9
			s := wire.State{Hash: machine.HashOf(&regs.General), Flags: uint8(bits),
				Site: plain, Whole: true}
			s.Registers = append(regs.General[:], r.FSBase)
			if rapid.Bool().Draw(t, "for values alone") {
				s.Site = int(extra)
				s.Outcome = int(usermode.Condition(5, regs.Flags))
			} else {
				hits++
			}
			s.Ordinal = hits
			want = append(want, s)
			r.Hit(r.thread, uint32(s.Site), &regs)
		}
		got := r.states(t)
		for i := range got {
			if i > 0 && !got[i].Whole {
				want[i].Whole, want[i].Registers = false, nil
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states differ (-want +got):\n%s", diff)
		}
	})
}

func TestWholeStates(t *testing.T) {
	r := newRig(t, false)
	r.looks(nil, []bpf.TracerLoadStep{step(opLeave, bpf.TracerLoadStep{})})
	r.Looks[first].Flags = uint8(bpf.TracerLookFlagLOOK_LEAVES)
	var names []string
	var want []bool
	for _, c := range []struct {
		name  string
		do    func()
		whole bool
		lost  bool
	}{
		{"the first one", func() { r.hit(plain, stack) }, true, false},
		{"the next", func() { r.hit(jump, stack, flags(0)) }, false, false},
		{"behind a program that comes to its end", func() { r.hit(jump, stack, flags(1<<6)) },
			false, false},
		{"behind one that does not", func() { r.hit(plain, stack) }, true, false},
		{"the one behind that", func() { r.hit(first, stack) }, false, false},
		{"behind a site that may leave", func() { r.hit(plain, stack) }, true, false},
		{"behind a handler in the image", func() {
			r.Signal(r.thread, base+0x777, &usermode.Registers{}, 11, 0)
			r.hit(plain, stack)
		}, true, false},
		{"behind a handler elsewhere", func() {
			r.Signal(r.thread, outside, &usermode.Registers{}, 11, 0)
			r.hit(plain, stack)
		}, true, false},
		{"the one behind them", func() { r.hit(plain, stack) }, false, false},
		{"behind what has been handed over", func() {
			r.Drain(r.thread)
			r.hit(plain, stack)
		}, true, true},
		{"the one behind it", func() { r.hit(plain, stack) }, false, true},
		{"behind what was lost", func() {
			keep := r.Output
			r.Output = func([]byte) bool { return false }
			r.Drain(r.thread)
			r.Output = keep
			r.hit(plain, stack)
		}, true, false},
	} {
		c.do()
		if !c.lost {
			names, want = append(names, c.name), append(want, c.whole)
		}
	}
	got := r.states(t)
	if len(got) != len(want) {
		t.Fatalf("%d states, want %d", len(got), len(want))
	}
	for i, s := range got {
		if s.Whole != want[i] {
			t.Errorf("%s: whole %v, want %v", names[i], s.Whole, want[i])
		}
	}
	if n := r.Metrics[bpf.TracerMetricMETRIC_LOST_STATES]; n != 2 {
		t.Errorf("%d states are counted as lost, want 2", n)
	}
}

// TestStatesComeBeforeEvents: when a batch of events is read the states of all its hits have been.
func TestStatesComeBeforeEvents(t *testing.T) {
	r := newRig(t, false)
	fetches := slices.Repeat([]bpf.TracerLoadStep{step(opFetch,
		bpf.TracerLoadStep{A: rsp, Size: 64})}, 16)
	r.looks(fetches)
	for i := range uint64(300) {
		site := uint32(plain)
		if i%50 < 25 {
			site = jump
		}
		r.hit(site, stack+i/7*16)
	}
	r.Drain(r.thread)
	states, wants, sequence := uint64(0), uint64(0), uint64(0)
	for _, record := range r.Records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		if !b.HasStates() {
			if wants += b.Received(); wants > states {
				t.Fatalf("events of %d hits, states of %d", wants, states)
			}
			continue
		}
		for s, err := range b.States() {
			if err != nil {
				t.Fatal(err)
			}
			if states++; s.Ordinal != states {
				t.Errorf("state %d is of hit %d", states, s.Ordinal)
			}
		}
		if b.Thread != 42 || b.Started != 7 || b.Hits != states || b.Lost != 0 ||
			b.Sequence != sequence {
			t.Errorf("a record of states: %+v", b)
		}
		sequence++
	}
	if wants != 300 || states != 300 {
		t.Errorf("events of %d hits, states of %d, want 300", wants, states)
	}
}
