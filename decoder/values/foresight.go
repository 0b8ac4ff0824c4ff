package values

import (
	"encoding/binary"

	"wpptrace/compress/wet/machine"
	"wpptrace/loader/loads"
)

// A foresight runs the instructions up to the next hit ahead of the walk, by what is known so far,
// to find where they store, and where they return to. It is a memory for that: what they have
// stored themselves, what the model has, and what hits have read.
type foresight struct {
	o       *oracle
	machine *machine.Machine
	stores  []stored
	reads   []loads.Read // of the next hit, behind external code
	used    []loads.Read // of these, by the instruction at hand
	other   bool         // of memory only private bytes are known: others may have been stored
}

// A stored is what has been stored somewhere; unknown: it is not known what.
type stored struct {
	loads.Read
	unknown bool
}

// begin has it stand where the walk does.
func (f *foresight) begin(o *oracle) {
	f.o, f.stores, f.reads, f.other = o, f.stores[:0], nil, false
	f.machine.Forget(machine.Set{General: 0xffff, Flags: machine.AllFlags, Vectors: 0xffff})
	for n := range 16 {
		v, k := o.thread.walker.General(n)
		f.machine.SetGeneral(n, v, k)
	}
	v, k := o.thread.walker.General(machine.FS)
	f.machine.SetGeneral(machine.FS, v, k)
}

// step runs an instruction, or external code.
func (f *foresight) step(x *executed) machine.Outcome {
	f.used = f.used[:0]
	if x.in != nil {
		out := f.machine.Step(x.in, x.next, f)
		for _, a := range f.machine.Accesses() {
			f.other = f.other || a.Write && (a.At == machine.Unknown || a.Size == 0)
		}
		return out
	}
	sp, k := f.machine.General(machine.RSP)
	f.machine.Forget(machine.Set{General: ^uint16(machine.CalleeSaved), Flags: machine.AllFlags,
		Vectors: 0xffff})
	f.machine.SetGeneral(machine.RSP, sp+8, k)
	f.other = true
	return machine.Outcome{Way: machine.Unsure}
}

// Load is for the machine: see machine.Memory.
func (f *foresight) Load(addr uint64, to []byte) machine.Knowledge {
	n := uint64(len(to))
	for i := len(f.stores) - 1; i >= 0; i-- {
		s := &f.stores[i]
		at := addr - s.Addr
		switch isAll := at < uint64(s.Size) && at+n <= uint64(s.Size); {
		case isAll && s.unknown:
			return f.ahead(addr, to)
		case isAll:
			copy(to, s.Bytes[at:])
			return machine.Unconfirmed
		case at < uint64(s.Size) || s.Addr-addr < n:
			return machine.Unknown
		}
	}
	m := f.o.memory
	switch h := m.Load(addr, to, true); {
	case f.other && !m.IsPrivate(addr, len(to)):
	case h.Knowledge(len(to)) != machine.Unknown:
		return machine.Unconfirmed
	}
	if f.o.recorder.fixed.read(f.o.recorder, addr, to) {
		return machine.Unconfirmed
	}
	if !f.other && m.Stored(addr, len(to)) == 0 && f.take(f.o.reads, addr, to) {
		return machine.Unconfirmed
	}
	if f.o.recorder.fixed.holds(f.o.recorder, addr, to) {
		return machine.Unconfirmed
	}
	return f.ahead(addr, to)
}

// ahead takes some bytes from what the next hit has read: nothing else says what is there.
func (f *foresight) ahead(addr uint64, to []byte) machine.Knowledge {
	if !f.take(f.reads, addr, to) {
		return machine.Unknown
	}
	r := loads.Read{Addr: addr, Size: len(to)}
	copy(r.Bytes[:], to)
	f.used = append(f.used, r)
	return machine.Unconfirmed
}

// take takes some bytes from what was read, if they are there.
func (f *foresight) take(reads []loads.Read, addr uint64, to []byte) bool {
	v, ok := wordOf(reads, addr, len(to))
	if ok {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v)
		copy(to, word[:])
	}
	return ok
}

// Store is for the machine: see machine.Memory.
func (f *foresight) Store(addr uint64, from []byte, k machine.Knowledge) {
	s := stored{loads.Read{Addr: addr, Size: len(from)}, k == machine.Unknown}
	copy(s.Bytes[:], from)
	f.stores = append(f.stores, s)
}

// goesTo reports whether what o.between has so far ends in a return, or in a jump or call through a
// register or a pointer, that surely leads to an address.
func (o *oracle) goesTo(to uint64) bool {
	if len(o.between) == 0 || o.between[len(o.between)-1].in == nil {
		return false
	}
	switch last := o.between[len(o.between)-1].in; {
	case last.Op == machine.Return:
	case last.Op != machine.Call && last.Op != machine.Jump, last.Src.Class == machine.Immediate:
		return false
	}
	f := &o.recorder.sight
	f.begin(o)
	out := machine.Outcome{}
	for i := o.done; i < len(o.between); i++ {
		out = f.step(&o.between[i])
	}
	return out.Way == machine.Leads && out.To == to
}

// foresee finds out where those of o.between store of which going back does not say it. reads are
// those of the next hit, of what memory holds there.
func (o *oracle) foresee(reads []loads.Read) {
	last := len(o.between)
	for last > 0 && o.between[last-1].in != nil {
		last--
	}
	f := &o.recorder.sight
	f.begin(o)
	for i := o.done; i < len(o.between); i++ {
		x := &o.between[i]
		if f.reads = nil; i >= last && !x.refuses {
			f.reads = reads
		}
		f.step(x)
		x.used = append(x.used[:0], f.used...)
		x.stores = x.stores[:0]
		for _, a := range f.machine.Accesses() {
			if x.in != nil && a.Size > 0 && a.Write && a.At != machine.Unknown {
				x.stores = append(x.stores, loads.Read{Addr: a.Addr, Size: a.Size})
			}
		}
	}
}
