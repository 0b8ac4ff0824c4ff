package values

import (
	"wpptrace/compress/wet/machine"
	"wpptrace/loader/loads"
)

// A library is what is known of a function that is not traced and of which the name says what it
// writes: what that leaves, and returns. Another one of the same name may do otherwise: so all that
// is unconfirmed.
type library struct {
	effect  loads.Effect
	stack   uint64       // where the stack ends
	reads   []loads.Read // what memory held, and holds
	returns bool         // value is what it returns
	value   uint64
	differs bool       // memcmp's variant decides what it returns,
	found   difference // for this
}

// Leaves: see wet.Oracle.
func (o *oracle) Leaves(to machine.Outcome, m *machine.Machine) {
	f := &o.library
	f.effect, f.returns, f.differs, f.reads = loads.Any, false, false, f.reads[:0]
	if o.wrong || to.Way == machine.Faults || to.Way == machine.Unsure {
		return
	}
	sp, k := m.General(machine.RSP)
	name := o.recorder.fixed.name(o.recorder, to.To)
	if f.effect = loads.EffectOf(name); f.effect == loads.Any || k == machine.Unknown ||
		o.recorder.races || o.handled {
		f.effect = loads.Any
		return
	}
	f.stack = sp
	if f.effect != loads.Nothing {
		return
	}
	c := content{recorder: o.recorder, memory: o.memory,
		reads: [2][]loads.Read{o.reads, o.doubted}}
	f.value, f.returns = c.result(name, m)
	f.differs, f.found = c.differs, c.found
	f.reads = c.unstored(f.reads)
}
