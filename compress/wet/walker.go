package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"wpptrace/compress/ops"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// A Path is what a symbol of a thread's stream stands for, as in wpp.Symbol: the blocks that ran,
// in a routine, but for some instructions of the first and of the last.
type Path struct {
	Routine   int
	Start     ops.Start
	Blocks    []int
	Skip, Cut int
}

// A Walker walks a thread along its paths, instruction by instruction, and emulates each: what the
// model does not know it asks an oracle for. It belongs to one goroutine. Recording and asking use
// it alike, so that both come to the same values.
type Walker struct {
	code     *Code
	oracle   Oracle
	observer Observer // nil: there is none
	watcher  Watcher  // the observer, if it is one; else nil
	machine  *machine.Machine
	memory   memory.Memory
	at       Place
	bias     uint64
	// where control goes on, as far as that is known, and where a call of external code returns to
	leads    machine.Outcome
	returns  uint64
	called   bool
	jumped   bool     // the last instruction was a jump
	callers  []caller // of external code that has not returned, the last one last
	atOnce   bool     // it has returned from its last call, and done nothing else
	returned *caller  // of what has returned last, while it is asked what that has left
	fresh    bool     // where it was, before what is walked next, is not known
	external bool     // external code, or a gap, comes before the next instruction
	lost     bool     // in a stretch of which nothing is to be known
	// of the instruction that runs: nobody else knows where it loads, or stores
	privateLoad, privateStore bool
	steps                     uint64
	resumes                   bool // the next path is walked from start on
	ends                      bool // the walk ends at end
	start                     Place
	end                       Place
	stop                      uint64 // how many instructions are walked, at most
	load                      Load
	done                      Executed
	before                    Before
	enters                    bool // the block that runs begins an activation
}

// NewWalker returns a walker that has not begun. It tells the observer what it has executed; nil:
// nobody.
func NewWalker(c *Code, o Oracle, observer Observer) *Walker {
	w := &Walker{code: c, oracle: o, machine: machine.New(), fresh: true, stop: math.MaxUint64}
	w.observe(observer)
	w.forget()
	return w
}

// observe has an observer be told from here on.
func (w *Walker) observe(o Observer) {
	w.observer = o
	w.watcher, _ = o.(Watcher)
}

// Memory is the model of the thread's memory. The oracle may keep its changes and undo them.
func (w *Walker) Memory() *memory.Memory { return &w.memory }

// Steps is how many instructions have been walked, a few more or less.
func (w *Walker) Steps() uint64 { return w.steps }

// Confirmed has a bit for each general register that is confirmed.
func (w *Walker) Confirmed() (general uint16) {
	for n := range 16 {
		if _, k := w.machine.General(n); k == machine.Confirmed {
			general |= 1 << n
		}
	}
	return general
}

// Passed returns what a general register that calls do not keep held where external code was
// called that has just returned; ok is false if that is not known. It is for Oracle.Resync.
func (w *Walker) Passed(n int) (v uint64, ok bool) {
	if w.returned == nil {
		return 0, false
	}
	return w.returned.values[n], w.returned.passed>>n&1 != 0
}

// AtOnce reports whether external code has been entered and has returned from there, and has not
// been in traced code in between. It is for Oracle.Resync.
func (w *Walker) AtOnce() bool { return w.atOnce }

// General returns what a general register holds.
func (w *Walker) General(n int) (uint64, machine.Knowledge) { return w.machine.General(n) }

// Begin begins the first stretch. It comes once, before all else.
func (w *Walker) Begin() error { return w.begin() }

// Resume begins at a site in the middle of the next path, with registers as they are before the hit
// there. external: external code, or a gap, comes right before. It comes once, in place of Begin.
func (w *Walker) Resume(at Place, m *machine.Machine, external bool) {
	w.at, w.start, w.resumes, w.machine, w.fresh = at, at, true, m, false
	w.external = external
}

// errEnd is that of a walk that has come to its end.
var errEnd = errors.New("the segment ends")

// Path walks along a path. It fails where the path is none of the code, and where the oracle does.
func (w *Walker) Path(p *Path) error {
	r := w.code.Routine(p.Routine)
	if r == nil {
		return fmt.Errorf("there are no instructions of routine %d", p.Routine)
	}
	w.bias = w.code.Bias(r.Image)
	w.at.Routine = p.Routine
	resumes := w.resumes
	w.resumes = false
	for i, n := range p.Blocks {
		if resumes && i < w.start.Step {
			continue
		}
		if n < 0 || n >= len(r.Blocks) {
			return fmt.Errorf("routine %d has no block %d", p.Routine, n)
		}
		b := &r.Blocks[n]
		from, to := 0, len(b.Insns)
		if i == 0 {
			from = p.Skip
		}
		if i == len(p.Blocks)-1 {
			to -= p.Cut
		}
		atStart := resumes && i == w.start.Step
		if atStart {
			from = w.start.Insn
		}
		if from < 0 || to > len(b.Insns) {
			return fmt.Errorf("block %d of routine %d has no instructions %d to %d", n, p.Routine,
				from, to)
		}
		if from >= to {
			continue
		}
		w.at.Block, w.at.Step = n, i
		inside := i > 0 || !w.fresh && (p.Start == ops.StartLoop || p.Start == ops.StartExtra)
		w.fresh = false
		w.enters = i == 0 && p.Start == ops.StartEntry
		if err := w.block(b, from, to, inside, atStart); err != nil {
			return err
		}
	}
	w.at.Symbol++
	return nil
}

// Mark takes a mark of the stream: what a thread's registers held is not known behind it.
func (w *Walker) Mark(ops.Mark, uint64) error {
	w.at.Symbol++
	w.fresh, w.external = true, true
	w.callers = w.callers[:0]
	w.endLost()
	w.forget()
	w.lose()
	return w.begin()
}

// begin begins a stretch without a hit: it lasts to the next site or mark.
func (w *Walker) begin() error {
	lost, err := w.oracle.Begin(w.at)
	w.beginLost(lost)
	return err
}

// site takes what a hit has seen, and begins the next stretch.
func (w *Walker) site(s *Site) error {
	if w.ends && w.at == w.end {
		return errEnd
	}
	w.endLost()
	lost, err := w.oracle.Site(w.at, s.Number, w.machine)
	w.beginLost(lost)
	return err
}

// Lose has nothing be known from here on, up to the next site or mark.
func (w *Walker) Lose() { w.beginLost(true) }

// beginLost begins a stretch; lost: nothing is to be known of it.
func (w *Walker) beginLost(lost bool) {
	w.memory.Begin()
	if w.lost = lost; lost {
		w.forget()
		w.lose()
	}
}

func (w *Walker) endLost() {
	if w.lost {
		w.forget()
		w.lose()
		w.lost = false
	}
}

// block walks along some instructions of a block.
func (w *Walker) block(b *Block, from, to int, inside, atStart bool) error {
	addr := b.Addr + w.bias
	for i := range b.Insns[:from] {
		addr += uint64(b.Insns[i].Len)
	}
	stop := to
	if left := w.stop - w.steps; left < uint64(to-from) {
		stop = from + int(left)
	}
	w.at.Insn, w.steps = from, w.steps+uint64(to-from)
	if !atStart {
		if err := w.arrive(addr, inside); err != nil {
			return err
		}
	}
	sites := b.Sites
	for len(sites) > 0 && sites[0].Insn < from {
		sites = sites[1:]
	}
	for i := from; i < to; i++ {
		in := &b.Insns[i]
		w.at.Insn = i
		hit := len(sites) > 0 && sites[0].Insn == i
		if hit {
			if err := w.site(&sites[0]); err != nil {
				return err
			}
			sites = sites[1:]
		}
		if i == stop || w.watcher != nil {
			w.before = Before{w.at, addr - w.bias, w.enters && i == from, w.external, hit,
				w.lost, w}
		}
		if i == stop {
			return errEnd
		}
		if w.watcher != nil {
			if err := w.watcher.Before(&w.before); err != nil {
				return err
			}
		}
		note := &b.notes[i]
		w.privateLoad, w.privateStore = note.loads, note.store
		if used := w.machine.Pending() & note.uses; used != 0 {
			w.oracle.Used(w.at, used, w.machine)
		}
		next := addr + uint64(in.Len)
		if w.observer != nil {
			f := &w.done.FlagsBefore
			f.Value, f.Known, f.Confirmed = w.flags()
		}
		w.leads = w.machine.Step(in, next, w)
		w.called = in.Op == machine.Call
		w.jumped = in.Op == machine.Jump || in.Op == machine.JumpIf
		w.returns = next
		if unknown := w.machine.Unknown(); unknown != 0 && !w.lost {
			w.oracle.Result(w.at, unknown, w.machine)
		}
		for j := range w.machine.Accesses() {
			if a := &w.machine.Accesses()[j]; a.Write && (a.At == machine.Unknown || a.Size == 0) {
				w.storedAnywhere()
			}
		}
		if w.observer != nil {
			if err := w.tell(in, addr); err != nil {
				return err
			}
		}
		w.external = false
		addr = next
	}
	return nil
}

// arrive says that control has come to an address. Whether external code ran before follows from
// where it was to go.
func (w *Walker) arrive(addr uint64, inside bool) error {
	known := w.leads.Way != machine.Faults && w.leads.Way != machine.Unsure
	switch {
	case known && w.leads.To == addr:
		return nil
	case inside && !w.called:
		if known {
			w.oracle.Disagrees()
		}
		return nil
	default:
		w.comeBack(addr)
	}
	w.external = true
	if w.lost {
		return nil
	}
	begins, lost, err := w.oracle.Resync(w.at, w.machine)
	if begins {
		w.beginLost(lost)
	}
	return err
}

// A caller is where external code returns to, and the registers that it keeps until then.
type caller struct {
	returns uint64
	values  [16]uint64 // with the stack pointer as it is behind the return
	known   uint16
	passed  uint16 // of the registers that it does not keep, those that are known
}

// mostCallers is how many calls of external code are remembered.
const mostCallers = 64

// comeBack forgets what external code may have changed, which has come to an address: it has
// returned there, from the last call or from one before, or it has called what is there.
func (w *Walker) comeBack(addr uint64) {
	w.oracle.Leaves(w.leads, w.machine)
	from, ok := w.caller()
	w.atOnce = ok && from.returns == addr
	if ok {
		if len(w.callers) == mostCallers {
			w.callers = append(w.callers[:0], w.callers[1:]...)
		}
		w.callers = append(w.callers, from)
	}
	w.loseExternal()
	w.returned = nil
	last := len(w.callers) - 1
	for last >= 0 && w.callers[last].returns != addr {
		last--
	}
	if last < 0 {
		w.forget()
		return
	}
	c := &w.callers[last]
	w.callers, w.returned = w.callers[:last], c
	w.machine.Forget(machine.Set{General: 0xffff, Flags: machine.Arithmetic, Vectors: 0xffff})
	w.machine.Doubt()
	for known := c.known; known != 0; known &= known - 1 {
		n := bits.TrailingZeros16(known)
		w.machine.SetGeneral(n, c.values[n], machine.Unconfirmed)
	}
}

// caller is where what has been called, or jumped to, returns to; ok is false if that is not known.
func (w *Walker) caller() (c caller, ok bool) {
	m := w.machine
	sp, k := m.General(machine.RSP)
	switch {
	case w.called:
		c.returns = w.returns
	case w.jumped && k != machine.Unknown:
		var to [8]byte
		if w.memory.Load(sp, to[:], true).OfSegment().Knowledge(len(to)) == machine.Unknown {
			return c, false
		}
		c.returns = binary.LittleEndian.Uint64(to[:])
	default:
		return c, false
	}
	for n := range 16 {
		v, k := m.General(n)
		if n == machine.RSP {
			v += 8
		}
		switch c.values[n] = v; {
		case k == machine.Unknown:
		case machine.CalleeSaved>>n&1 != 0:
			c.known |= 1 << n
		default:
			c.passed |= 1 << n
		}
	}
	return c, true
}

// forget forgets all registers, but for the base of a segment, which threads do not change.
func (w *Walker) forget() {
	w.machine.Forget(machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff})
	w.leads, w.called = machine.Outcome{Way: machine.Unsure}, false
}

// loseExternal loses what external code may have changed, where it was entered: what is not
// private, and what lies below the stack pointer.
func (w *Walker) loseExternal() {
	if sp, k := w.machine.General(machine.RSP); k == machine.Unknown {
		w.memory.LoseAll()
	} else {
		w.memory.Drop(sp)
		w.memory.Lose()
	}
	w.oracle.Doubt()
}

// storedAnywhere loses what an instruction may have changed of which it is not known where it
// stores.
func (w *Walker) storedAnywhere() {
	if w.privateStore {
		w.memory.LoseAll()
	} else {
		w.memory.Lose()
	}
	w.oracle.Doubt()
}

// lose loses all of memory.
func (w *Walker) lose() {
	w.memory.LoseAll()
	w.oracle.Doubt()
}

// usesStack reports whether an operation loads from the stack, or stores there, besides its
// operands.
func usesStack(op machine.Op) (loads, stores bool) {
	switch op {
	case machine.Pop, machine.PopF, machine.Leave, machine.Return:
		return true, false
	case machine.Push, machine.PushF, machine.Call:
		return false, true
	}
	return false, false
}

// Load is for the machine: see machine.Memory.
func (w *Walker) Load(addr uint64, to []byte) machine.Knowledge {
	if w.lost {
		return machine.Unknown
	}
	l := &w.load
	l.Place, l.Addr, l.Bytes = w.at, addr, to
	l.Private, l.memory = w.privateLoad, &w.memory
	l.Held = w.memory.Load(addr, to, w.privateLoad)
	k, isNew := w.oracle.Load(l)
	if isNew {
		w.memory.Learn(addr, to, k, w.privateLoad)
	}
	return k
}

// Store is for the machine: see machine.Memory.
func (w *Walker) Store(addr uint64, from []byte, k machine.Knowledge) {
	if !w.lost {
		w.memory.Store(addr, from, k, w.privateStore)
	}
}

// tell tells the observer of the instruction at an address of the process.
func (w *Walker) tell(in *machine.Insn, addr uint64) error {
	m, x := w.machine, &w.done
	x.Place, x.Addr, x.Code, x.External = w.at, addr-w.bias, in, w.external
	x.Accesses = m.Accesses()
	if w.code.changed != nil {
		for i := range x.Accesses {
			a := &x.Accesses[i]
			a.At, a.Known = w.sure(a.At), w.sure(a.Known)
		}
	}
	x.Written = x.Written[:0]
	for written := m.Written(); written != 0; written &= written - 1 {
		n := bits.TrailingZeros16(written)
		v, k := m.General(n)
		x.Written = append(x.Written, Register{Number: uint8(n), Value: v, Known: w.sure(k)})
	}
	x.walker = w
	x.FlagsUsed, x.FlagsWritten = m.FlagsUsed(), m.FlagsWritten()
	return w.observer.Executed(x)
}
