package stepping

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
	"wpptrace/query/names"
	"wpptrace/query/values"
)

// A Moment is what is known in an activation that the thread is in. Registers are what they were
// when it called the next one; memory is that of now: what the thread has read or written in this
// segment, and has not lost to code that is not traced. What is lost is known all the same,
// unconfirmed, where nothing but such code can have written it, or the thread itself, and
//   - the thread reads it before that code runs, or at some 65,536 instructions from now at most;
//   - or it read or wrote the same value there before;
//   - or it is a local variable whose address no code takes.
type Moment struct {
	Place             Place // the instruction that comes next in it, or the call
	registers, memory *wet.Before
	variables         *variables.Table
	image             int // of Place
	history           *history
	at, began         Position // of the thread, and the first of the activation
	hidden            []Watch  // where variables are whose address no code takes
}

// moments are those that somebody has asked for since the thread came to a position.
type moments struct {
	at   Position
	list map[Position]*wet.Before
}

// In is what is known in one of the activations of Frames, by its index there. It stays good. It
// takes the time of a replay of the segment of the call, once.
func (x *State) In(frame int) (m *Moment, err error) {
	defer wpp.Recover(&err)
	s, err := x.step(x.at)
	if err != nil {
		return nil, err
	}
	p, at, f := x.placeOf(s), x.at, s.frame
	for range frame {
		if f.Caller == nil {
			return nil, fmt.Errorf("there is no activation %d around", frame)
		}
		p, at, f = f.Called, f.called, f.Caller
	}
	memory, err := x.before(x.at)
	if err != nil {
		return nil, err
	}
	registers, err := x.before(at)
	if err != nil {
		return nil, err
	}
	return x.moment(p, x.at, f, registers, memory)
}

// moment is that of an activation, when the thread is at a position.
func (x *State) moment(p Place, at Position, f *Frame, registers, memory *wet.Before) (*Moment,
	error) {
	m := &Moment{Place: p, registers: registers, memory: memory, variables: x.list,
		image: x.snapshot.Routines[p.Routine].Image, at: at, began: f.began}
	var err error
	if m.history, err = x.around(at); err != nil {
		return nil, err
	}
	hides, err := x.frameOf(p.Routine)
	if err != nil {
		return nil, err
	}
	for _, a := range m.Locals() {
		if addr, size, k := a.Address(p.Addr, m, nil); k != machine.Unknown && hides.Hides(a) {
			m.hidden = append(m.hidden, Watch{addr, int(size)})
		}
	}
	return m, nil
}

// frameOf is the frame of a routine, which is made once.
func (x *State) frameOf(routine int) (*values.Frame, error) {
	if x.frames[routine] == nil {
		code, err := wet.CodeOf(x.snapshot)
		if err != nil {
			return nil, err
		}
		x.frames[routine] = values.FrameOf(code, routine)
	}
	return x.frames[routine], nil
}

// before is what is known at a position, when the thread stands where it does.
func (x *State) before(at Position) (*wet.Before, error) {
	if x.known.list == nil || x.known.at != x.at {
		x.known = moments{x.at, map[Position]*wet.Before{}}
	}
	b := x.known.list[at]
	if b == nil {
		isFault, err := x.segments.isFault(at)
		if err != nil {
			return nil, err
		}
		if segment := &x.segments.list[at.Segment]; isFault {
			b, err = segment.End()
		} else {
			b, err = segment.Before(uint64(at.Insn))
		}
		if err != nil {
			return nil, err
		}
		x.known.list[at] = b
	}
	return b, nil
}

// PC is the process's address of Place.
func (m *Moment) PC() uint64 { return m.Place.Addr + m.BiasOf(m.image) }

// General returns what a general register holds, by its hardware number.
func (m *Moment) General(n int) (uint64, machine.Knowledge) { return m.registers.General(n) }

// Vector returns the 32 bytes that a vector register holds, and what is known of each.
func (m *Moment) Vector(n int) (*[32]byte, *[32]machine.Knowledge) { return m.registers.Vector(n) }

// Flags are the flags as machine.Flags has them.
func (m *Moment) Flags() (value, known, confirmed uint8) { return m.registers.Flags() }

// BiasOf is what is added to link-time addresses of an image.
func (m *Moment) BiasOf(image int) uint64 { return m.memory.BiasOf(image) }

// Locals are the arguments and local variables that are somewhere there: those of an inner block
// behind those of an outer one.
func (m *Moment) Locals() []*values.Asked { return m.of(m.Place.Routine) }

// Globals are the global variables that are somewhere there.
func (m *Moment) Globals() []*values.Asked { return m.of(variables.Global) }

func (m *Moment) of(routine int) (list []*values.Asked) {
	if m.variables == nil {
		return nil
	}
	for i := range m.variables.Variables {
		v := &m.variables.Variables[i]
		if a := values.Whole(m.variables, v); v.Routine == routine && a.Has(m.Place.Addr) {
			list = append(list, a)
		}
	}
	return list
}

// Value is what a number has that is one of Locals or Globals, or a part of it.
func (m *Moment) Value(a *values.Asked) (uint64, machine.Knowledge) {
	value, k, _ := a.At(m.Place.Addr, m, nil)
	return value, k
}

// Variable is a local variable, of the innermost block that has one of the name, or else a global
// one, or a part of it: see values.VariablesNamed. It fails where there is none.
func (m *Moment) Variable(text string) (*values.Asked, error) {
	a, err := values.PartOf(append(m.Globals(), m.Locals()...), text)
	if a == nil && err == nil {
		err = fmt.Errorf("no variable %s has a place that is known here: info locals, info "+
			"globals list those that have", names.Printable(text))
	}
	return a, err
}
