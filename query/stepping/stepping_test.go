package stepping

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/querytest"
	"wpptrace/query/values"
)

func newState(t *testing.T) *State {
	t.Helper()
	x, err := New(querytest.Values(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestMoves(t *testing.T) {
	type move func(*State, Way) (End, error)
	for name, c := range map[string]struct {
		move          move
		forward, back []int // of 11 instructions: where it stops
	}{
		"instruction": {(*State).Instruction, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
			[]int{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
		"into": {(*State).Into, []int{3, 6, 10}, []int{6, 3, 0}},
		"line": {(*State).Line, []int{3, 6, 10}, []int{6, 3, 0}},
		"out":  {(*State).Out, []int{6, 10}, []int{6, 5, 0}},
	} {
		x := newState(t)
		for way, want := range map[Way][]int{Forward: c.forward} {
			if got := stops(t, x, way, c.move); !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		if got := stops(t, x, Back, c.move); !slices.Equal(got, c.back) {
			t.Errorf("%s back: %v, want %v", name, got, c.back)
		}
	}
}

// stops are where moves stop, to the end, which they say is one.
func stops(t *testing.T, x *State, way Way, move func(*State, Way) (End, error)) (list []int) {
	t.Helper()
	for range 100 {
		was := x.Position()
		end, err := move(x, way)
		if err != nil {
			t.Fatal(err)
		}
		if was != x.Position() {
			list = append(list, x.Position().Insn)
		}
		if end != Arrived {
			if want := map[Way]End{Forward: Last, Back: Start}[way]; end != want {
				t.Errorf("it ends with %d, want %d", end, want)
			}
			return list
		}
	}
	t.Fatal("it does not end")
	return nil
}

func TestRun(t *testing.T) {
	s := querytest.Values()
	for text, want := range map[string][]int{"clip": {6}, "clip+0xb": {4, 9}, "clip.c:3": {3},
		"clip.c:2": {6}} {
		x := newState(t)
		stop, err := StopAt(s, text)
		if err != nil {
			t.Fatal(err)
		}
		x.Stops = []Stop{{}, stop}
		var got []int
		for {
			end, err := x.Run(Forward)
			if err != nil {
				t.Fatal(err)
			}
			if end != Reached {
				break
			}
			got = append(got, x.Position().Insn)
			if at, err := x.StopsHere(); err != nil || !slices.Equal(at, []int{1}) {
				t.Errorf("%s: it stands at %v, %v", text, at, err)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if _, err := StopAt(s, "nothing"); err == nil {
		t.Error("a break at nothing is taken")
	}
}

func now(t *testing.T, x *State) *Moment {
	t.Helper()
	b, err := x.In(0)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStopBehindPrologue: a stop at a routine is where its variables are.
func TestStopBehindPrologue(t *testing.T) {
	s := querytest.Variables()
	list, err := variables.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Variables {
		v := &list.Variables[i]
		if v.Places = slices.Clone(v.Places); v.Routine == 0 && len(v.Places) > 0 {
			v.Places[0].Lo = 0x401003
		}
	}
	s.Sections[len(s.Sections)-1] = variables.Section(list)
	for text, want := range map[string]int{"clip": 1, "clip+0x0": 6, "clip+0x3": 1} {
		x, err := New(s, 0)
		if err != nil {
			t.Fatal(err)
		}
		stop, err := StopAt(s, text)
		if err != nil {
			t.Fatal(err)
		}
		x.Stops = []Stop{stop}
		if end, err := x.Run(Forward); err != nil || end != Reached || x.Position().Insn != want {
			t.Errorf("%s: it stops at %v, want %d: %v", text, x.Position(), want, err)
		}
	}
}

// TestWatches: moves end at each write of what is watched, both ways, and at loads of what others
// have written.
func TestWatches(t *testing.T) {
	x := newState(t)
	x.SetWatches([]Watch{{0x7004, 1}, {0x6fff, 1}, {0x7008, 1}})
	for _, move := range []struct {
		way  Way
		end  End
		insn int
	}{{Forward, Written, 4}, {Forward, Written, 9}, {Forward, Last, 10}, {Back, Written, 9},
		{Back, Written, 4}, {Back, Start, 0}} {
		end, err := x.Run(move.way)
		if err != nil || end != move.end || x.Position().Insn != move.insn || x.Unsure() != 0 {
			t.Fatalf("it ends with %d at %d, %d unsure, want %v: %v", end, x.Position().Insn,
				x.Unsure(), move, err)
		}
		here, err := x.WritesHere()
		if err != nil || (len(here) == 1) != (end == Written) || len(here) == 1 && here[0].Found {
			t.Errorf("at %d there are %v, %v", move.insn, here, err)
		}
	}
	for range 4 {
		if _, err := x.Instruction(Forward); err != nil {
			t.Fatal(err)
		}
	}
	m, err := x.Behind()
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if k := m.Read(0x7000, b[:]); k != machine.Unconfirmed || b[0] != 5 {
		t.Errorf("behind the store there is %v, %d", b, k)
	}
	w := &watching{watches: []Watch{{0x7000, 4}}, held: [][]byte{make([]byte, 4)},
		known: [][]bool{make([]bool, 4)}}
	for i, c := range []struct {
		access machine.Access
		found  int // entries
	}{
		{machine.Access{Addr: 0x7001, Size: 2, Bytes: [64]byte{1, 2}, Known: machine.Confirmed}, 0},
		{machine.Access{Addr: 0x7002, Size: 2, Bytes: [64]byte{2, 9}, Known: machine.Confirmed}, 0},
		{machine.Access{Addr: 0x7002, Size: 8, Bytes: [64]byte{3, 9},
			Known: machine.Unconfirmed}, 1},
		{machine.Access{Addr: 0x7002, Size: 1, Bytes: [64]byte{3}, Write: true}, 2},
		{machine.Access{Addr: 0x7002, Size: 1, Bytes: [64]byte{4}, Known: machine.Confirmed}, 2},
		{machine.Access{Addr: 0x7004, Size: 8, Write: true, Known: machine.Confirmed}, 2},
		{machine.Access{Addr: 0x6ffc, Size: 4, Write: true, Known: machine.Confirmed}, 2},
	} {
		w.access(0, &c.access)
		if len(w.into.list) != c.found {
			t.Errorf("access %d: %v", i, w.into.list)
		}
	}
	if !w.into.list[0].Found || w.into.list[1].Found {
		t.Errorf("found: %v", w.into.list)
	}
}

// TestState: before an instruction, registers and memory hold what was before it.
func TestState(t *testing.T) {
	x := newState(t)
	rax := func() (uint64, machine.Knowledge) {
		return now(t, x).General(machine.RAX)
	}
	if _, k := rax(); k != machine.Unknown {
		t.Errorf("rax is known at first")
	}
	for _, want := range []uint64{7, 7, 7, 5} {
		if _, err := x.Instruction(Forward); err != nil {
			t.Fatal(err)
		}
		if v, k := rax(); v != want || k == machine.Unknown {
			t.Errorf("at %d rax is %d, %d; want %d", x.Position().Insn, v, k, want)
		}
	}
	var b [8]byte
	if held := now(t, x).Held(0x7000, b[:]); held.Known != 0 {
		t.Errorf("before the store %v", held)
	}
	if _, err := x.Instruction(Forward); err != nil {
		t.Fatal(err)
	}
	if held := now(t, x).Held(0x7000, b[:]); held.Known != 0xff || held.Confirmed != 0 ||
		b[0] != 5 {
		t.Errorf("behind the store %v, %v", held, b)
	}
	if _, known, _ := now(t, x).Flags(); known == 0 {
		t.Error("flags are not known")
	}
}

func TestNoValues(t *testing.T) {
	if _, err := New(&wpp.Snapshot{Threads: make([]wpp.Thread, 1)}, 0); !errors.Is(err,
		values.ErrNone) {
		t.Error(err)
	}
}

// TestFrames: a thread that calls, returns and is called by code that is not traced is in the
// activations that a stack of calls has.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b boundary
		snapshot := &wpp.Snapshot{Routines: make([]wpp.Routine, 6)}
		for i := range snapshot.Routines {
			r := &snapshot.Routines[i]
			r.Entry, r.Blocks = uint64(1000*i), make([]wpp.Block, 1)
		}
		type activation struct{ routine, at int }
		stack := []activation{{0, 0}}
		executed := func(op machine.Op, external bool) {
			top := &stack[len(stack)-1]
			e := &wet.Executed{Addr: uint64(1000*top.routine + top.at), External: external,
				Code: &machine.Insn{Op: op, Len: 1}}
			e.Routine = top.routine
			b.arrive(snapshot, e)
			b.routine, b.op, b.next = top.routine, op, e.Addr+1
			top.at++
			depth := 0
			for f := b.frame; f.Caller != nil; f = f.Caller {
				depth++
			}
			if b.frame.depth != len(stack)-1 || depth != len(stack)-1 ||
				b.frame.routine != top.routine {
				t.Fatalf("at depth %d of %d, routine %d of %v", b.frame.depth, depth,
					b.frame.routine, stack)
			}
		}
		executed(machine.Mov, true)
		external := false
		for range rapid.IntRange(1, 200).Draw(t, "length") {
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0:
				executed(machine.Call, external)
				stack = append(stack, activation{rapid.IntRange(0, 5).Draw(t, "routine"), 0})
				external = rapid.Bool().Draw(t, "external")
			case what == 1 && len(stack) > 1:
				executed(machine.Return, external)
				stack, external = stack[:len(stack)-1], false
			case what == 2:
				executed(machine.Call, external)
				external = true
			default:
				executed(machine.Mov, external)
				external = false
			}
		}
	})
}

// TestFault: a thread that a fault ended stands before that at its end, with all that was known
// then.
func TestFault(t *testing.T) {
	x, err := New(querytest.Faulted(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := x.Fault(); e != nil || err != nil {
		t.Fatalf("at the start: %+v, %v", e, err)
	}
	if end, err := x.Run(Forward); end != Last || err != nil {
		t.Fatal(end, err)
	}
	p, err := x.Place()
	e, failed := x.Fault()
	if err != nil || failed != nil || e == nil || e.Addr != p.Addr || p.Addr != 0x40100b {
		t.Fatalf("%+v %+v, %v, %v", p, e, err, failed)
	}
	m, err := x.In(0)
	if err != nil {
		t.Fatal(err)
	}
	if v, k := m.General(machine.RDX); v != 0x7000 || k != machine.Confirmed {
		t.Errorf("rdx is %x, %d", v, k)
	}
	if _, err := x.Instruction(Back); err != nil {
		t.Fatal(err)
	}
	if e, err := x.Fault(); e != nil || err != nil {
		t.Errorf("before it: %+v, %v", e, err)
	}
}
