package values

import (
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
)

// A Cause is why something of an executed instruction is not known: what it follows from was lost
// there, be it many instructions before.
type Cause uint8

// The causes.
const (
	// external code has left it in a register, which was overwritten before a probe: returned
	// there, or was called with it
	Returned Cause = iota
	Passed
	// it was in memory behind external code, and no probe has read it since
	Behind
	// it was in memory that the probe before has not read: it lies where nobody knew yet, or there
	// was more than a probe reads
	Unread
	// an instruction that is not emulated has made it
	NotEmulated
	// what a probe has seen was lost, or was not as it had been worked out, or a handler came
	Lost
	Causes // how many there are

	noCause = Causes
)

// String names what is not known.
func (c Cause) String() string {
	return [...]string{
		"external code has returned it in a register",
		"external code has passed it in a register",
		"in memory, behind external code",
		"in memory that no probe has read",
		"made by an instruction that is not emulated",
		"lost: a hit was not seen, or not as worked out",
	}[c]
}

// causes are those of what is not known, as a thread runs.
type causes struct {
	registers [18]Cause // with the bases of segments
	vectors   [16]Cause
	flags     Cause
	stored    map[uint64]Cause // by bytes of memory
	behind    bool             // external code has run since the last hit
	called    bool             // the last instruction was a call
	returns   uint64           // and the address behind it

	unknown uint32 // registers before the instruction that runs
	lost    bool
}

// mostStored is how many bytes of memory have causes.
const mostStored = 1 << 20

func newCauses() *causes {
	c := &causes{}
	c.all(Lost)
	return c
}

// all gives all registers one.
func (c *causes) all(cause Cause) {
	for i := range c.registers {
		c.registers[i] = cause
	}
	for i := range c.vectors {
		c.vectors[i] = cause
	}
	c.flags = cause
	c.stored = map[uint64]Cause{}
}

// before notes what is not known before an instruction.
func (c *causes) before(b *wet.Before) {
	if c.behind = c.behind && !b.Hit || b.External; b.External {
		cause := Passed
		if c.called && b.Addr == c.returns {
			cause = Returned
		}
		c.all(cause)
	}
	c.unknown, c.lost = 0, b.Lost
	for n := range c.registers {
		if _, k := b.General(n); k == machine.Unknown {
			c.unknown |= 1 << n
		}
	}
}

// executed finds the cause of an instruction of which something is not known, and gives it to what
// that has written; noCause: there is none.
func (c *causes) executed(e *wet.Executed) Cause {
	cause := c.find(e)
	for _, r := range e.Written {
		c.registers[r.Number] = cause
	}
	for n := range c.vectors {
		if e.Code.WrittenVectors()>>n&1 != 0 {
			c.vectors[n] = cause
		}
	}
	if e.FlagsWritten != 0 {
		c.flags = cause
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		if !a.Write || a.At == machine.Unknown {
			continue
		}
		for at := range uint64(min(a.Size, 64)) {
			if cause == noCause {
				delete(c.stored, a.Addr+at)
			} else if len(c.stored) < mostStored {
				c.stored[a.Addr+at] = cause
			}
		}
	}
	c.called, c.returns = e.Code.Op == machine.Call, e.Addr+uint64(e.Code.Len)
	return cause
}

func (c *causes) find(e *wet.Executed) Cause {
	if c.lost {
		return Lost
	}
	if e.Code.Op == machine.Opaque {
		return NotEmulated
	}
	uses := e.Code.Uses()
	for n := range c.registers {
		if uses.General&c.unknown>>n&1 != 0 && c.registers[n] != noCause {
			return c.registers[n]
		}
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		if a.Write || a.Known != machine.Unknown {
			continue
		}
		for at := range uint64(min(a.Size, 64)) {
			if cause, ok := c.stored[a.Addr+at]; ok {
				return cause
			}
		}
		if c.behind {
			return Behind
		}
		return Unread
	}
	for n := range c.vectors {
		if uses.Vectors>>n&1 != 0 && c.vectors[n] != noCause {
			return c.vectors[n]
		}
	}
	if e.FlagsUsed != 0 {
		return c.flags
	}
	return noCause
}
