//go:build linux && cgo

package valuetests

import (
	"math/bits"
	"slices"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/query/slice"
	"wpptrace/query/values"
)

// TestDependences: what instructions of recorded runs depend on by data is what brute force finds
// in single-stepped ones: the last that wrote a register, a flag or a byte of memory.
func TestDependences(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, _ := record(t, s)
			g, err := slice.Of(snapshot, 0)
			if err != nil {
				t.Fatal(err)
			}
			w := newWriters()
			w.follow(t, snapshot, s.Trace.Threads[0].Values)
			if g.Len() != len(w.want) || g.Len() < 1000 {
				t.Fatalf("%d instances, %d in the truth", g.Len(), len(w.want))
			}
			compared, edges := 0, 0
			for i, want := range w.want {
				if w.unsure[i] {
					continue
				}
				compared++
				edges += len(want)
				if got := data(g, i); !slices.Equal(got, want) {
					t.Fatalf("instance %d at %#x depends on %d, want %d", i, g.Place(i).Addr, got,
						want)
				}
			}
			t.Logf("%d of %d instances compared, %d dependences", compared, g.Len(), edges)
			if compared < g.Len()/2 {
				t.Errorf("only %d of %d instances are compared", compared, g.Len())
			}
		})
	}
}

func data(g *slice.Graph, instance int) (list []int) {
	for on, by := range g.DependsOn(instance) {
		if by == slice.Data {
			list = append(list, on)
		}
	}
	slices.Sort(list)
	return list
}

// writers are who wrote last: instances, or those of code that is not traced.
type writers struct {
	registers [20]int
	values    [32]wet.Register // as the snapshot has what traced code has written to them
	flags     [8]int
	memory    map[uint64]written
	called    uint64  // where the call that was the last instance returns to; 0: it was none
	returned  bool    // the last instance was a return
	calls     []call  // that have not returned
	want      [][]int // of each instance
	unsure    []bool  // it is not known what it accesses, or who wrote that
}

type call struct {
	returns uint64
	pointer int // who wrote the stack pointer before it
	kept    [6]holding
}

// holding is who wrote a register, and what, as the snapshot has it.
type holding struct {
	by    int
	value wet.Register
}

// calleeSaved are the registers that a call leaves as they are, but for the stack pointer.
var calleeSaved = []int{machine.RBX, machine.RBP, 12, 13, 14, 15}

func (w *writers) kept() (k [6]holding) {
	for i, r := range calleeSaved {
		k[i] = holding{w.registers[r], w.values[r]}
	}
	return k
}

// restore has registers that hold what they did before a call be written by who wrote them then.
func (w *writers) restore(kept [6]holding) {
	for i, r := range calleeSaved {
		was, is := kept[i].value, w.values[r]
		if was.Known != machine.Unknown && is.Known != machine.Unknown && was.Value == is.Value {
			w.registers[r] = kept[i].by
		}
	}
}

type written struct {
	by    int
	value byte
}

const (
	others = -1
	unsure = -2 // an instance whose access is not known
)

func newWriters() *writers {
	w := &writers{memory: map[uint64]written{}}
	for i := range w.registers {
		w.registers[i] = others
	}
	for i := range w.flags {
		w.flags[i] = others
	}
	return w
}

// follow goes along the steps of a thread, and along the instances that a snapshot has of them.
func (w *writers) follow(t *testing.T, s *wpp.Snapshot, steps []truth.Step) {
	for e, err := range values.Instructions(s, 0) {
		if err != nil {
			t.Fatal(err)
		}
		for len(steps) > 0 && steps[0].PC != e.Addr { // one that is not traced
			w.writes(&steps[0], nil, others)
			steps = steps[1:]
		}
		if len(steps) == 0 {
			t.Fatalf("instance %d at %#x is not in the truth", len(w.want), e.Addr)
		}
		w.step(&steps[0], e)
		steps = steps[1:]
	}
}

func (w *writers) step(step *truth.Step, e *wet.Executed) {
	instance := len(w.want)
	if e.External {
		w.external(e)
	}
	for i := len(w.calls) - 1; i >= 0 && (e.External || w.returned); i-- {
		if w.calls[i].returns == e.Addr { // the stack pointer is the one of before the call
			w.registers[machine.RSP] = w.calls[i].pointer
			w.restore(w.calls[i].kept)
			w.calls = w.calls[:i]
			break
		}
	}
	var list []int
	sure := e.Code.Uses().Vectors == 0
	for i := range e.Accesses {
		sure = sure && isSure(&e.Accesses[i])
	}
	depend := func(on int) {
		if sure = sure && on != unsure; on >= 0 {
			list = append(list, on)
		}
	}
	for r := e.Code.Uses().General; r != 0; r &= r - 1 {
		depend(w.registers[bits.TrailingZeros32(r)])
	}
	for f := e.FlagsUsed; f != 0; f &= f - 1 {
		depend(w.flags[bits.TrailingZeros8(f)])
	}
	for _, m := range step.Reads {
		words := map[uint64][]int{} // who wrote the bytes of each aligned word
		for i, b := range m.Bytes {
			addr := m.Addr + uint64(i)
			if x, ok := w.memory[addr]; ok && x.value == b {
				words[addr/8] = append(words[addr/8], x.by)
			}
		}
		for _, by := range words {
			for _, on := range by {
				depend(on)
			}
			if slices.Contains(by, others) && slices.Max(by) >= 0 {
				sure = false // others may have written all of it, as far as a snapshot shows
			}
		}
	}
	slices.Sort(list)
	w.want = append(w.want, slices.Compact(list))
	w.unsure = append(w.unsure, !sure)
	w.called, w.returned = 0, e.Code.Op == machine.Return
	if e.Code.Op == machine.Call {
		w.called = e.Addr + uint64(e.Code.Len)
		w.calls = append(w.calls, call{w.called, w.registers[machine.RSP], w.kept()})
	}
	w.writes(step, e, instance)
}

// isSure reports whether it is known which bytes an access is of.
func isSure(a *machine.Access) bool { return a.At != machine.Unknown && a.Size > 0 }

// What external code may change by the System V ABI, and what is passed to it.
var (
	changed = []int{machine.RAX, machine.RCX, machine.RDX, machine.RSI, machine.RDI, 8, 9, 10, 11}
	passed  = []int{machine.RDI, machine.RSI, machine.RDX, machine.RCX, 8, 9}
)

// external is what code that is not traced does before an instance: if it was called right before,
// what it may change is the call's, which depends on what is passed. Else nothing is known.
func (w *writers) external(e *wet.Executed) {
	by := others
	if w.called == e.Addr {
		by = len(w.want) - 1
		for _, r := range passed {
			if on := w.registers[r]; on >= 0 {
				w.want[by] = append(w.want[by], on)
			}
			w.unsure[by] = w.unsure[by] || w.registers[r] == unsure
		}
		slices.Sort(w.want[by])
		w.want[by] = slices.Compact(w.want[by])
		for _, r := range changed {
			w.registers[r] = by
			w.values[r].Known = machine.Unknown
		}
	} else {
		for r := range 16 {
			w.registers[r] = others
			w.values[r].Known = machine.Unknown
		}
	}
	for i := range w.flags {
		w.flags[i] = by
	}
}

// writes has what a step wrote be written by somebody; e: what a snapshot has of it, nil if
// nothing.
func (w *writers) writes(step *truth.Step, e *wet.Executed, by int) {
	if e != nil { // what others do to registers, external says
		for _, r := range step.Written {
			if r.Register < truth.Flags {
				w.registers[r.Register] = by
			}
		}
		for _, r := range e.Written {
			w.registers[r.Number] = by
			w.values[r.Number] = r
		}
		for f := e.FlagsWritten; f != 0; f &= f - 1 {
			w.flags[bits.TrailingZeros8(f)] = by
		}
	}
	if e != nil && slices.ContainsFunc(e.Accesses, func(a machine.Access) bool {
		return a.Write && !isSure(&a)
	}) {
		by = unsure
	}
	for _, m := range step.Writes {
		for i, b := range m.Bytes {
			w.memory[m.Addr+uint64(i)] = written{by, b}
		}
	}
}
