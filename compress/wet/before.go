package wet

import (
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
)

// A Watcher is an observer that is also told of each instruction before it runs.
type Watcher interface {
	Observer
	Before(*Before) error
}

// Before is an instruction that is about to run, with what is known then. It is good until the
// watcher returns.
type Before struct {
	Place
	Addr     uint64 // link-time
	Enters   bool   // an activation of its routine begins
	External bool   // external code, or a gap, comes right before it
	Hit      bool   // it carries a probe
	Lost     bool   // nothing is to be known of it
	walker   *Walker
}

// General returns what a general register holds.
func (b *Before) General(n int) (uint64, machine.Knowledge) {
	v, k := b.walker.machine.General(n)
	return v, b.walker.sure(k)
}

// Vector returns the 32 bytes that a vector register holds, and what is known of each.
func (b *Before) Vector(n int) (*[32]byte, *[32]machine.Knowledge) {
	return b.walker.vector(n)
}

// BiasOf is what is added to link-time addresses of an image.
func (b *Before) BiasOf(image int) uint64 { return b.walker.code.Bias(image) }

// Flags are the flags as machine.Flags has them.
func (b *Before) Flags() (value, known, confirmed uint8) { return b.walker.flags() }

// Read fills to, 1 to 64 bytes, with what the model holds at an address of the process. That nobody
// has loaded: of what others may write it is at most unconfirmed.
func (b *Before) Read(addr uint64, to []byte) machine.Knowledge {
	return b.Held(addr, to).Knowledge(len(to))
}

// Held is Read that says of each byte what is known.
func (b *Before) Held(addr uint64, to []byte) (h memory.Held) {
	if b.walker.lost {
		return h
	}
	m := &b.walker.memory
	h = m.Load(addr, to, true)
	if b.walker.code.changed != nil {
		h.Confirmed = 0
	}
	if !m.IsPrivate(addr, len(to)) {
		for i := range to {
			if !m.IsPrivate(addr+uint64(i), 1) {
				h.Confirmed &^= 1 << i
			}
		}
	}
	return h
}

// sure is what is to be known of a value where code may have changed: it is not confirmed.
func (w *Walker) sure(k machine.Knowledge) machine.Knowledge {
	if w.code.changed != nil && k == machine.Confirmed {
		return machine.Unconfirmed
	}
	return k
}

// flags are the flags, and what is to be known of them.
func (w *Walker) flags() (value, known, confirmed uint8) {
	value, known, confirmed = w.machine.Flags()
	if w.code.changed != nil {
		confirmed = 0
	}
	return value, known, confirmed
}

// vector is a vector register, and what is to be known of it.
func (w *Walker) vector(n int) (*[32]byte, *[32]machine.Knowledge) {
	data, known := w.machine.Vector(n)
	if w.code.changed == nil {
		return data, known
	}
	doubted := *known
	for i, k := range doubted {
		doubted[i] = w.sure(k)
	}
	return data, &doubted
}
