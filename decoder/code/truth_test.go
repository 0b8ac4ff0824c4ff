package code_test

import (
	"bytes"
	"testing"

	"wpptrace/compress/wet/machine"
	"wpptrace/decoder/code"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// seen is the memory that one step of a truth has read.
type seen struct {
	reads []truth.MemoryValue
	lost  int
}

func (s *seen) Load(addr uint64, to []byte) machine.Knowledge {
	for _, r := range s.reads {
		if at := addr - r.Addr; addr >= r.Addr && at+uint64(len(to)) <= uint64(len(r.Bytes)) {
			copy(to, r.Bytes[at:])
			return machine.Confirmed
		}
	}
	s.lost++
	return machine.Unknown
}

func (s *seen) Store(uint64, []byte, machine.Knowledge) {}

// TestMachineIsTheTruth runs each step of the sample runs, from the registers that single-stepping
// has found before it.
func TestMachineIsTheTruth(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			im, err := image.Open(bytes.NewReader(s.Executable), int64(len(s.Executable)), name)
			if err != nil {
				t.Fatal(err)
			}
			c := comparison{t: t, image: im, bias: s.Trace.Bias, insns: map[uint64]*machine.Insn{}}
			for _, thread := range s.Trace.Threads {
				c.thread(thread)
			}
			t.Logf("%d steps, %d opaque, %d registers unknown, %d loads not in the truth",
				c.steps, c.opaque, c.unknown, c.lost)
			if c.steps == 0 || c.opaque*100 > c.steps {
				t.Errorf("%d of %d steps are not emulated", c.opaque, c.steps)
			}
		})
	}
}

type comparison struct {
	t                            *testing.T
	image                        *image.Image
	bias                         uint64
	insns                        map[uint64]*machine.Insn
	steps, opaque, unknown, lost int
}

func (c *comparison) insn(pc uint64) *machine.Insn {
	if in := c.insns[pc]; in != nil {
		return in
	}
	var raw []byte
	for n := uint64(15); n > 0 && raw == nil; n-- {
		raw = c.image.Bytes(pc, pc+n)
	}
	in, ok := x86.Decode(raw)
	if !ok {
		c.t.Fatalf("no instruction at %x", pc)
	}
	out := code.Insn(&in, raw)
	c.insns[pc] = &out
	return &out
}

func (c *comparison) thread(thread *truth.Thread) {
	m := machine.New()
	var r truth.Replay
	for i := range thread.Values {
		step := &thread.Values[i]
		r.Before(step)
		for n, v := range r.Registers[:17] {
			m.SetGeneral(n, v, machine.Confirmed)
		}
		m.SetFlags(machine.OwnFlags(uint16(r.Registers[17])), machine.Confirmed)
		in := c.insn(step.PC)
		mem := &seen{reads: step.Reads}
		outcome := m.Step(in, step.PC+c.bias+uint64(in.Len), mem)
		r.After(step)
		c.steps++
		c.lost += mem.lost
		if in.Op == machine.Opaque {
			c.opaque++
		}
		c.compare(m, &r, step, in)
		if i+1 < len(thread.Values) && thread.Values[i+1].Index == step.Index+1 &&
			outcome.Way != machine.Unsure && outcome.To-c.bias != thread.Values[i+1].PC &&
			len(thread.Values[i+1].Before) == 0 {
			c.t.Errorf("%x: leads to %x, want %x", step.PC, outcome.To-c.bias,
				thread.Values[i+1].PC)
		}
	}
}

func (c *comparison) compare(m *machine.Machine, r *truth.Replay, step *truth.Step,
	in *machine.Insn) {
	whole := true
	for n := range 16 {
		v, k := m.General(n)
		if k == machine.Unknown {
			c.unknown++
			whole = false
		} else if v != r.Registers[n] {
			c.t.Errorf("%x: register %d is %x, want %x: %+v", step.PC, n, v, r.Registers[n], *in)
		}
	}
	value, known, _ := m.Flags()
	if want := machine.OwnFlags(uint16(step.Flags)); (value^want)&known != 0 {
		c.t.Errorf("%x: flags are %x of %x, want %x: %+v", step.PC, value, known, want, *in)
	}
	if _, ok := m.Hash(); ok != whole {
		c.t.Errorf("%x: hash %v", step.PC, ok)
	}
	for _, a := range m.Accesses() {
		if a.Write && !wrote(step, &a) {
			c.t.Errorf("%x: writes %x at %x, want %x: %+v", step.PC, a.Bytes[:a.Size], a.Addr,
				step.Writes, *in)
		}
	}
}

// wrote reports whether a step has made a write, as far as what was written is known.
func wrote(step *truth.Step, a *machine.Access) bool {
	for _, w := range step.Writes {
		at := a.Addr - w.Addr
		n := min(a.Size, len(a.Bytes))
		if a.Addr >= w.Addr && at+uint64(n) <= uint64(len(w.Bytes)) &&
			(a.Known == machine.Unknown || bytes.Equal(w.Bytes[at:at+uint64(n)], a.Bytes[:n])) {
			return true
		}
	}
	return false
}
