package processor_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"wpptrace/compress/wet/machine"
	"wpptrace/decoder/code"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/processor"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A maker makes cases of instructions.
type maker struct {
	r     *rand.Rand
	c     *processor.Case
	index int
}

// newCase begins a case at an index, with registers, flags and memory that are drawn.
func newCase(r *rand.Rand, index int) *maker {
	c := &processor.Case{}
	for i := range c.Before.Registers {
		c.Before.Registers[i] = edge(r)
	}
	c.Before.Flags = 2 | r.Uint64()&0x8d5
	c.Before.MXCSR = 0x1f80
	for i := range c.Before.Vectors {
		for j := 0; j < 32; j += 8 {
			binary.LittleEndian.PutUint64(c.Before.Vectors[i][j:], element(r))
		}
	}
	for i := 0; i < processor.Window; i += 8 {
		binary.LittleEndian.PutUint64(c.Data[0][i:], element(r))
	}
	return &maker{r, c, index}
}

// add adds an instruction, and before it what makes its operands lie in the window. It answers
// false where it cannot.
func (m *maker) add(raw []byte) bool {
	in, ok := x86.Decode(raw)
	if !ok || int(in.Len) != len(raw) {
		return false
	}
	raw = append([]byte{}, raw...)
	e := in.Effects(raw, 0)
	if s, ok := in.Segment(); !ok || s != x86.NoSegment {
		return false
	}
	if insn := code.Insn(&in, raw); insn.Op == machine.Opaque && insn.Cause == machine.Segments {
		return false // the child needs them
	}
	switch e.Operation {
	case x86.Unknown, x86.State, x86.CpuID, x86.Random, x86.SystemCall, x86.Stop, x86.XBegin,
		x86.XEnd, x86.XAbort:
		return false
	case x86.Vector:
		gathers := in.Map == 0x12 && in.Op >= 0x90 && in.Op <= 0x93
		if e.StoresUnseen() || gathers || in.Map >= 0x20 && e.Address().Mem {
			return false
		}
	}
	var before []byte
	set := func(reg int8, v uint64) { before = append(before, movabs(uint8(reg), v)...) }
	accesses := e.Accesses(nil)
	if a := e.Address(); a.Mem && len(accesses) == 0 {
		accesses = append(accesses, x86.Access{At: a})
	}
	relative := -1
	for _, a := range accesses {
		target := int64(processor.WindowAt + 256 + m.r.IntN(512))
		if e.Operation == x86.CmpXchgPair || e.Operation == x86.Vector || m.r.IntN(2) == 0 {
			target &^= 31
		}
		o := a.At
		switch {
		case o.RIP:
			_, _, at := in.Operands(raw, 0)
			relative = at - 4
			binary.LittleEndian.PutUint32(raw[relative:], uint32(target))
		case o.Base < 0 && o.Index < 0:
			return false
		case o.Base < 0:
			set(o.Index, uint64((target-o.Disp)/int64(o.Scale)))
		case o.Base == o.Index:
			set(o.Base, uint64((target-o.Disp)/int64(1+o.Scale)))
		default:
			index := int64(0)
			if o.Index >= 0 {
				index = int64(m.r.IntN(64)) - 32
				set(o.Index, uint64(index))
			}
			set(o.Base, uint64(target-o.Disp-index*int64(o.Scale)))
		}
	}
	if e.Repeat != 0 && len(accesses) > 0 {
		switch e.Operation {
		case x86.Movs, x86.Cmps, x86.Stos, x86.Lods, x86.Scas:
			set(x86.RCX, uint64(m.r.IntN(12)))
		}
	}
	switch e.Operation {
	case x86.Bt, x86.Bts, x86.Btr, x86.Btc:
		if e.Dst.Mem && !e.HasImm {
			set(e.Src.Reg, edge(m.r)&^0xffff|uint64(m.r.IntN(1600)))
			if e.Dst.Size > 2 {
				set(e.Src.Reg, uint64(int64(m.r.IntN(3200)-1600)))
			}
			if e.Src.Reg == e.Dst.Base || e.Src.Reg == e.Dst.Index {
				return false
			}
		}
	}
	if relative >= 0 {
		target := int64(binary.LittleEndian.Uint32(raw[relative:]))
		next := int64(processor.CodeOf(m.index)) + int64(len(m.c.Code)+len(before)+len(raw))
		binary.LittleEndian.PutUint32(raw[relative:], uint32(target-next))
	}
	if len(m.c.Code)+len(before)+len(raw) > processor.MostCode {
		return false
	}
	m.c.Code = append(append(m.c.Code, before...), raw...)
	return true
}

// movabs is mov $v,%reg.
func movabs(reg uint8, v uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{0x48 | reg>>3, 0xb8 | reg&7}, v)
}

// jump adds an instruction that goes on behind some bytes.
func (m *maker) jump() {
	next := processor.CodeOf(m.index) + uint64(len(m.c.Code))
	skipped := byte(m.r.IntN(2)) // a nop
	switch m.r.IntN(8) {
	case 0:
		m.c.Code = append(m.c.Code, byte(0xe0+m.r.IntN(4)), skipped)
	case 1: // call, then take the address off
		m.c.Code = append(m.c.Code, movabs(4, processor.WindowAt+256)...)
		m.c.Code = append(m.c.Code, 0xe8, skipped, 0, 0, 0)
	case 2: // push an address, return to it
		m.c.Code = append(m.c.Code, movabs(4, processor.WindowAt+256)...)
		m.c.Code = append(m.c.Code, 0x68)
		m.c.Code = binary.LittleEndian.AppendUint32(m.c.Code, uint32(next+10+8+uint64(skipped)))
		m.c.Code = append(m.c.Code, 0xc2, 16, 0)
	case 3: // jmp *%rax
		m.c.Code = append(m.c.Code, movabs(0, next+12+uint64(skipped))...)
		m.c.Code = append(m.c.Code, 0xff, 0xe0)
	case 4: // popf
		m.c.Code = append(m.c.Code, movabs(4, processor.WindowAt+256)...)
		m.c.Code = append(m.c.Code, 0x68)
		m.c.Code = binary.LittleEndian.AppendUint32(m.c.Code, m.r.Uint32()&0xcd5)
		m.c.Code = append(m.c.Code, 0x9d)
	default:
		m.c.Code = append(m.c.Code, byte(0x70+m.r.IntN(16)), skipped)
	}
	m.c.Code = append(m.c.Code, 0x90)
}

// A memory is the window, and what is known of each of its bytes.
type memory struct {
	bytes   [processor.Window]byte
	unknown [processor.Window]bool
	outside bool
}

func (w *memory) at(addr uint64, n int) int {
	at := addr - processor.WindowAt
	if at > processor.Window || at+uint64(n) > processor.Window {
		w.outside = true
		return -1
	}
	return int(at)
}

func (w *memory) Load(addr uint64, to []byte) machine.Knowledge {
	at := w.at(addr, len(to))
	if at < 0 {
		return machine.Unknown
	}
	k := machine.Confirmed
	for i := range to {
		if to[i] = w.bytes[at+i]; w.unknown[at+i] {
			k = machine.Unknown
		}
	}
	return k
}

func (w *memory) Store(addr uint64, from []byte, k machine.Knowledge) {
	at := w.at(addr, len(from))
	if at < 0 {
		return
	}
	for i := range from {
		w.bytes[at+i], w.unknown[at+i] = from[i], k == machine.Unknown
	}
}

// A figure counts what was compared.
type figure struct {
	cases, steps, unsure, outside, registers, unknown, opaque, flags, flagsUnknown int
	bytes, bytesUnknown                                                            int
}

// An emulated is a case as package machine runs it.
type emulated struct {
	m      *machine.Machine
	mem    memory
	steps  int
	opaque int
	last   string // the instruction that it has ended with
	unsure bool   // where it goes on is not known
	bad    string // what differs
}

// emulate runs a case that the processor has run, or would run. If hides is not nil, a part of what
// the case begins with is not known, and something else stands there: no result may come of it.
func emulate(c *processor.Case, index int, ran bool, hides *rand.Rand) *emulated {
	e := &emulated{m: machine.New()}
	e.mem.bytes = c.Data[0]
	for n, v := range c.Before.Registers {
		e.m.SetGeneral(n, v, machine.Confirmed)
	}
	e.m.SetFlags(machine.OwnFlags(uint16(c.Before.Flags)), machine.Confirmed)
	for n, v := range c.Before.Vectors {
		e.m.SetVector(n, v, machine.Confirmed)
	}
	e.m.SetMXCSR(c.Before.MXCSR, machine.Confirmed)
	if hides != nil {
		e.hide(hides)
	}
	start := processor.CodeOf(index)
	for pc := start; pc < start+uint64(len(c.Code)); {
		raw := c.Code[pc-start:]
		in, ok := x86.Decode(raw)
		if !ok {
			e.bad = fmt.Sprintf("% x is no instruction", raw)
			return e
		}
		insn := code.Insn(&in, raw)
		e.last = fmt.Sprintf("% x", raw[:in.Len])
		raises := ran && c.After.Signal != 0 && c.After.RIP == pc
		if raises && (c.After.Signal == uint32(unix.SIGILL) || insn.Op == machine.NoOp) {
			return e.unsureOf() // a form that does not exist; clflush of what is not there
		}
		if raises && insn.Op == machine.Opaque {
			return e.unsureOf()
		}
		out := e.m.Step(&insn, pc+uint64(in.Len), &e.mem)
		if raises && c.After.Signal == uint32(unix.SIGSEGV) && in.Operation() == x86.Vector &&
			len(e.m.Accesses()) == 1 && e.m.Accesses()[0].Addr%16 != 0 {
			return e.unsureOf() // it has to be aligned
		}
		for _, a := range e.m.Accesses() {
			if a.Write && (a.At == machine.Unknown || a.Size == 0) {
				for i := range e.mem.unknown {
					e.mem.unknown[i] = true
				}
			}
		}
		if _, k := e.m.General(machine.RAX); raises && k == machine.Unknown &&
			(insn.Op == machine.Div || insn.Op == machine.IDiv) {
			return e.unsureOf()
		}
		if ran && raises != (out.Way == machine.Faults) {
			e.bad = fmt.Sprintf("the processor raises %d at %x, the machine goes %d at %x",
				c.After.Signal, c.After.RIP, out.Way, pc)
			return e
		}
		if out.Way == machine.Faults {
			return e
		}
		e.steps++
		if insn.Op == machine.Opaque {
			e.opaque++
		}
		if out.Way == machine.Unsure {
			return e.unsureOf()
		}
		pc = out.To
	}
	if ran && c.After.Signal != 0 {
		e.bad = fmt.Sprintf("the processor raises %d at %x", c.After.Signal, c.After.RIP)
	}
	return e
}

// hide makes a quarter of all registers and of memory unknown, and something else.
func (e *emulated) hide(r *rand.Rand) {
	hidden := func() bool { return r.IntN(4) == 0 }
	for n := range 16 {
		if hidden() {
			e.m.SetGeneral(n, edge(r), machine.Unknown)
		}
		if hidden() {
			v, k := e.m.Vector(n)
			for i := range v {
				if hidden() {
					v[i], k[i] = byte(edge(r)), machine.Unknown
				}
			}
		}
	}
	if hidden() {
		e.m.SetFlags(uint8(r.Uint32())&machine.Arithmetic, machine.Unknown)
	}
	for i := range e.mem.bytes {
		if hidden() {
			e.mem.bytes[i], e.mem.unknown[i] = byte(edge(r)), true
		}
	}
}

func (e *emulated) unsureOf() *emulated {
	e.unsure = true
	return e
}

// compare says what differs from what the processor has made of the case.
func (e *emulated) compare(c *processor.Case, f *figure) string {
	f.steps += e.steps
	f.opaque += e.opaque
	f.cases++
	if e.bad != "" {
		return e.bad
	}
	if e.unsure {
		f.unsure++
		return ""
	}
	for n, want := range c.After.Registers {
		v, k := e.m.General(n)
		f.registers++
		if k == machine.Unknown {
			f.unknown++
		} else if v != want {
			return fmt.Sprintf("register %d is %x, the processor has %x", n, v, want)
		}
	}
	value, known, _ := e.m.Flags()
	for bit := uint8(1); bit <= machine.DF; bit <<= 1 {
		f.flags++
		if known&bit == 0 {
			f.flagsUnknown++
		}
	}
	if want := machine.OwnFlags(uint16(c.After.Flags)); (value^want)&known != 0 {
		return fmt.Sprintf("flags are %x of %x, the processor has %x", value&known, known, want)
	}
	for n, want := range c.After.Vectors {
		v, k := e.m.Vector(n)
		for i := range want {
			f.bytes++
			if k[i] == machine.Unknown {
				f.bytesUnknown++
			} else if v[i] != want[i] {
				return fmt.Sprintf("vector %d is\n%x, the processor has\n%x, before it was\n%x", n,
					*v, want, c.Before.Vectors[n])
			}
		}
	}
	for i, want := range c.Data[1] {
		if !e.mem.unknown[i] && e.mem.bytes[i] != want {
			return fmt.Sprintf("byte %x of the memory is %x, the processor has %x", i,
				e.mem.bytes[i], want)
		}
	}
	return ""
}

// A tester compares many cases.
type tester struct {
	testing.TB
	p     *processor.Processor
	cases []*processor.Case
	figure
	hides  *rand.Rand
	claims int // registers that are known where a part of what they may be made of is not
	differ map[string]int
}

func newTester(t testing.TB) *tester {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasBMI2 || !cpu.X86.HasADX {
		t.Skip("the processor has no AVX2, BMI2 or ADX")
	}
	p, err := processor.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &tester{TB: t, p: p, hides: rand.New(rand.NewPCG(7, 8)), differ: map[string]int{}}
}

// next begins a case.
func (t *tester) next(r *rand.Rand) *maker { return newCase(r, len(t.cases)) }

// take takes a case, if all that it does stays in the window.
func (t *tester) take(m *maker) {
	if e := emulate(m.c, m.index, false, nil); e.mem.outside || e.bad != "" {
		t.outside++
		return
	}
	t.cases = append(t.cases, m.c)
	if len(t.cases) == processor.MostCases {
		t.run()
	}
}

// run runs what was taken.
func (t *tester) run() {
	if err := t.p.Run(t.cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range t.cases {
		if c.Endless {
			t.Errorf("case % x does not end", c.Code)
			continue
		}
		e := emulate(c, i, true, nil)
		bad := e.compare(c, &t.figure)
		last := ""
		if bad == "" {
			var f figure
			seed := t.hides.Uint64()
			e = emulate(c, i, true, rand.New(rand.NewPCG(seed, 0)))
			if bad = e.compare(c, &f); bad == "" {
				t.claims += f.registers - f.unknown
				continue
			}
			last = fmt.Sprintf("with unknown values, % x", c.Code)
		} else {
			last = t.blame(c, i)
		}
		if t.differ[last]++; len(t.differ) < 40 && t.differ[last] == 1 {
			t.Errorf("%s: %s", last, bad)
		}
	}
	t.cases = t.cases[:0]
}

// blame returns the first instruction behind which a case differs.
func (t *tester) blame(c *processor.Case, index int) string {
	var ends []int
	for at := 0; at < len(c.Code); {
		in, _ := x86.Decode(c.Code[at:])
		if at += int(in.Len); in.Kind != x86.Other {
			continue
		}
		ends = append(ends, at)
	}
	at := 0
	for _, end := range ends {
		part := &processor.Case{Before: c.Before, Code: c.Code[:end]}
		part.Data[0] = c.Data[0]
		batch := make([]*processor.Case, index+1)
		for i := range batch {
			batch[i] = &processor.Case{Before: c.Before}
		}
		batch[index] = part
		if err := t.p.Run(batch); err != nil {
			t.Fatal(err)
		}
		var f figure
		if e := emulate(part, index, true, nil); e.compare(part, &f) != "" {
			return fmt.Sprintf("% x", c.Code[at:end])
		}
		at = end
	}
	return fmt.Sprintf("% x as a whole", c.Code)
}

func (t *tester) report() {
	f := &t.figure
	t.Logf("%d cases, %d steps (%d opaque), %d cases end unsure, %d left out; unknown: %d of %d "+
		"registers, %d of %d flags, %d of %d bytes of vectors", f.cases, f.steps, f.opaque, f.unsure, f.outside, f.unknown,
		f.registers, f.flagsUnknown, f.flags, f.bytesUnknown, f.bytes)
	t.Logf("%d registers are known where a part is not", t.claims)
	if f.unknown*10 > f.registers {
		t.Errorf("%d of %d registers are unknown", f.unknown, f.registers)
	}
}

// soaked is how many steps to run: with make soak, many more.
func soaked(steps int) int {
	if os.Getenv("WPPTRACE_SOAK") != "" {
		return 200 * steps
	}
	return steps
}

// TestMachineAgainstProcessor runs random instructions.
func TestMachineAgainstProcessor(t *testing.T) {
	all := forms()
	r := rand.New(rand.NewPCG(1, 2))
	tester := newTester(t)
	for tester.steps < soaked(600_000) {
		m := tester.next(r)
		for range 6 {
			if r.IntN(8) == 0 {
				m.jump()
				continue
			}
			m.add(all[r.IntN(len(all))].encode(r))
		}
		if len(m.c.Code) > 0 && len(m.c.Code) <= processor.MostCode {
			tester.take(m)
		}
	}
	tester.run()
	tester.report()
}

// TestVectorsAgainstProcessor runs random vector instructions.
func TestVectorsAgainstProcessor(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	tester := newTester(t)
	for tester.steps < soaked(100_000) {
		m := tester.next(r)
		for range 4 {
			m.addVector()
		}
		if len(m.c.Code) > 0 {
			tester.take(m)
		}
	}
	tester.run()
	tester.report()
}

// addVector adds a vector instruction that is emulated.
func (m *maker) addVector() {
	for {
		e := encoder{r: m.r, size: []int{4, 4, 4, 8}[m.r.IntN(4)]}
		prefix, space := m.r.IntN(4), 1+m.r.IntN(3)
		vex := m.r.IntN(2) == 0
		if vex {
			e.vex = []byte{byte(space), byte(prefix), byte(m.r.IntN(2))}
			e.none = m.r.IntN(2) == 0
		} else {
			e.prefix = [][]byte{nil, {0x66}, {0xf3}, {0xf2}}[prefix]
			e.opcode = [][]byte{1: {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}}[space]
		}
		e.opcode = append(e.opcode, byte(m.r.IntN(256)))
		e.operands("r")
		raw := e.bytes(vex)
		in, ok := x86.Decode(append(append([]byte{}, raw...), 0))
		if !ok || in.Operation() != x86.Vector {
			continue
		}
		if int(in.Len) == len(raw)+1 { // an immediate
			raw = append(raw, byte(m.r.IntN(256)))
		}
		if in, ok = x86.Decode(raw); !ok || int(in.Len) != len(raw) {
			continue
		}
		if insn := code.Insn(&in, raw); insn.Op != machine.Opaque && m.add(raw) {
			return
		}
	}
}

// element draws 8 bytes as vectors have them: integers, or floating-point numbers.
func element(r *rand.Rand) uint64 {
	single := func() uint64 {
		switch r.IntN(6) {
		case 0:
			return uint64(math.Float32bits(float32(r.IntN(200) - 100)))
		case 1:
			return uint64([]uint32{0, 1 << 31, 0x7f800000, 0xff800000, 0x7fc12345, 0xff812345, 1,
				0x807fffff, 0x4effffff, 0xcf000000, 0x7f7fffff}[r.IntN(11)])
		}
		return uint64(math.Float32bits(float32(r.NormFloat64() * 1000)))
	}
	switch r.IntN(5) {
	case 0:
		return math.Float64bits(r.NormFloat64() * 1e6)
	case 1:
		return []uint64{0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000012345,
			0xfff0000000012345, 1, 0x800fffffffffffff, 0x41dfffffffc00000, 0xc3e0000000000000,
			0x7fefffffffffffff, 0x47efffffefffffff}[r.IntN(12)]
	case 2:
		return single() | single()<<32
	case 3:
		return math.Float64bits(float64(r.IntN(2000)-1000) / 2)
	}
	return edge(r)
}

// instructions returns each different instruction of a program that says nothing of where it is.
func instructions(t testing.TB, path string, seen map[string]bool) (all [][]byte) {
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	for _, part := range im.Ranges {
		code := im.Bytes(part.Lo, part.Hi)
		for len(code) > 0 {
			in, ok := x86.Decode(code)
			if !ok {
				break
			}
			raw := code[:in.Len]
			code = code[in.Len:]
			if in.Kind != x86.Other {
				continue
			}
			key := append([]byte{}, raw...)
			if in.IsRIPRelative() {
				_, _, at := in.Operands(raw, 0)
				copy(key[at-4:], []byte{0, 0, 0, 0})
			}
			if !seen[string(key)] {
				seen[string(key)] = true
				all = append(all, key)
			}
		}
	}
	return all
}

// FuzzMachine runs whatever instructions bytes are.
func FuzzMachine(f *testing.F) {
	for _, form := range forms() {
		f.Add(form.encode(rand.New(rand.NewPCG(9, 10))), uint64(0))
	}
	p := newTester(f).p
	f.Fuzz(func(t *testing.T, raw []byte, seed uint64) {
		tester := &tester{TB: t, p: p, hides: rand.New(rand.NewPCG(seed, 1)),
			differ: map[string]int{}}
		m := tester.next(rand.New(rand.NewPCG(seed, 0)))
		for len(raw) > 0 && len(m.c.Code) < 100 {
			in, ok := x86.Decode(raw)
			if !ok {
				break
			}
			if in.Kind == x86.Other && in.Operation() != x86.PopF {
				m.add(raw[:in.Len])
			}
			raw = raw[in.Len:]
		}
		if len(m.c.Code) > 0 {
			tester.take(m)
			tester.run()
		}
	})
}

// TestInstructionsOfPrograms runs each different instruction of some programs.
func TestInstructionsOfPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tester := newTester(t)
	seen := map[string]bool{}
	for _, path := range []string{"/bin/bash", "/usr/bin/python3",
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"} {
		if !testenv.Have(t, path) {
			continue
		}
		all := instructions(t, path, seen)
		t.Logf("%s: %d", path, len(all))
		for _, raw := range all {
			if in, ok := x86.Decode(raw); ok {
				insn := code.Insn(&in, raw)
				if _, _, err := machine.ParseInsn(machine.AppendInsn(nil, &insn)); err != nil {
					t.Errorf("%x in a file: %v", raw, err)
				}
			}
		}
		for len(all) > 0 {
			m := tester.next(r)
			for range min(4, len(all)) {
				m.add(all[0])
				all = all[1:]
			}
			if len(m.c.Code) > 0 {
				tester.take(m)
			}
		}
	}
	tester.run()
	tester.report()
}
