package absint

import (
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Machine executes instructions symbolically, to find what an indirect jump's target is made of.
// It models what compilers use to compute one, and gives the result of everything else a symbol of
// its own.
type Machine struct {
	Regs    [16]Value
	Memory  Memory
	Symbols Symbols
	bounds  bounds
	compare comparison
}

// A comparison is what the flags hold: those of v - with, both of size bytes.
type comparison struct {
	valid bool
	size  uint8
	v     Value
	with  uint64
}

// A Check is a bounds check and where the index lies at its conditional jump: position = index +
// bias.
type Check struct {
	Block int // -1 for none
	Index x86.Operand
	Bias  int64
}

// NoCheck is that no bounds check is known.
var NoCheck = Check{Block: -1}

// MaxEntries is how many entries a table may have whose index has no bound.
const MaxEntries = 4096

// EntryCFA is the rule at a routine's entry: the call has pushed the return address and nothing
// else.
var EntryCFA = image.CFA{Reg: x86.DwarfRSP, Off: 8}

// FrameSymbol stands for the canonical frame address.
const FrameSymbol = 1

// slotFrame is where the frame pointer of a routine is taken to be whose frame address is in a
// slot. Its true distance, which is not the same in all activations, does not matter as long as
// nothing else is there.
const slotFrame = 1 << 40

// Reset prepares the machine to run from an instruction where cfa is the rule. All registers hold
// symbols, the stack or frame pointer by what the rule says.
func (m *Machine) Reset(cfa image.CFA) {
	m.Memory.reset()
	m.bounds = m.bounds[:0]
	m.Symbols = append(m.Symbols[:0], Unknown{}, Unknown{})
	m.compare = comparison{}
	for i := range m.Regs {
		m.Regs[i] = m.Symbols.Fresh(Initial)
		m.Symbols[m.Regs[i].Sym].Reg = int8(i)
	}
	frame := Value{Sym: FrameSymbol, Bits: 64, Off: -int64(cfa.Off)}
	switch cfa.Reg {
	case x86.DwarfRSP:
		m.Regs[x86.RSP] = frame
	case x86.DwarfRBP:
		m.Regs[x86.RBP] = frame
	case image.Slot:
		m.Regs[x86.RBP] = Value{Sym: FrameSymbol, Bits: 64, Off: slotFrame}
	}
}

// Step executes one instruction that is neither a jump nor a call.
func (m *Machine) Step(e *x86.Effects) {
	if !m.execute(e) {
		m.forget(e)
	}
	if e.FlagsWritten()&^x86.DF != 0 {
		isComparison := e.Operation == x86.Cmp || e.Operation == x86.Sub // compareWith has noted it
		m.compare.valid = m.compare.valid && isComparison
	}
}

// Call forgets what a call, or a system call, may change: the registers in the set, and memory.
func (m *Machine) Call(clobbers x86.Set) {
	m.ForgetRegisters(clobbers, Result)
	m.compare.valid = false
	m.Memory.forgetPointed()
}

// ForgetRegisters has some registers hold what comes from a source and is not known.
func (m *Machine) ForgetRegisters(set x86.Set, from Source) {
	for reg := 0; set != 0; reg, set = reg+1, set>>1 {
		if set&1 != 0 {
			m.Regs[reg] = m.Symbols.Fresh(from)
		}
	}
}

// forget gives everything that an instruction may write a new symbol.
func (m *Machine) forget(e *x86.Effects) {
	m.ForgetRegisters(e.Written()&^x86.SetOf(x86.RSP), Computed)
	switch by, ok := e.StackDelta(); {
	case !ok:
		m.Regs[x86.RSP] = m.Symbols.Fresh(Computed)
	case by != 0:
		m.Regs[x86.RSP] = m.Symbols.sum(m.Regs[x86.RSP], Number(uint64(by)), 64)
		if by < 0 {
			m.store(stackTop(), -by, m.Symbols.Fresh(Computed))
		}
	}
	to, bytes, ok := e.Stores()
	switch {
	case e.StoresUnseen():
		m.Memory.forgetPointed()
	case !ok:
	case e.Far():
		m.Memory.forgetAll()
	default:
		m.store(to, bytes, m.Symbols.Fresh(Computed))
	}
}

// read returns what a register holds, zero-extended from the operand's size.
func (m *Machine) read(o x86.Operand) Value {
	if o.Reg >= x86.AH {
		return Value{Sym: m.Symbols.Fresh(Computed).Sym, Bits: 8}
	}
	return m.Symbols.narrow(m.Regs[o.Reg], o.Size*8)
}

// write sets a register's low bytes; a write of four clears the others.
func (m *Machine) write(o x86.Operand, v Value) {
	switch {
	case o.Size >= 4:
		m.Regs[o.Reg] = m.Symbols.narrow(v, o.Size*8)
	case o.Reg >= x86.AH:
		m.Regs[o.Reg-x86.AH] = m.Symbols.Fresh(Computed)
	case v.Form == Symbolic:
		v.Bits, v.Dirty = min(v.Bits, o.Size*8), true
		m.Regs[o.Reg] = v
	case v.Form == Constant && m.Regs[o.Reg].Form == Constant:
		low := int64(1)<<(o.Size*8) - 1
		m.Regs[o.Reg].Off = m.Regs[o.Reg].Off&^low | v.Off&low
	default:
		m.Regs[o.Reg] = m.Symbols.Fresh(Computed)
	}
}

// Get returns the value of an operand.
func (m *Machine) Get(o x86.Operand) Value {
	if o.Mem {
		return m.load(o, o.Size)
	}
	return m.read(o)
}

// set writes an operand.
func (m *Machine) set(o x86.Operand, v Value) {
	if o.Mem {
		m.store(o, int(o.Size), v)
		return
	}
	m.write(o, v)
}

// effective returns the address that a memory operand stands for.
func (m *Machine) effective(rm x86.Operand) Value {
	v := Number(uint64(rm.Disp))
	if rm.Base >= 0 {
		v = m.Symbols.sum(m.Regs[rm.Base], v, 64)
	}
	if rm.Index < 0 {
		return v
	}
	if rm.Scale > 1 || m.Regs[rm.Index].Form >= Scaled || v.Form >= Scaled {
		return m.Symbols.sum(v, m.Symbols.times(m.Regs[rm.Index], rm.Scale), 64)
	}
	return m.Symbols.indexed(v, m.Regs[rm.Index])
}

// place returns the slot that a memory operand is, when its address has no index.
func (m *Machine) place(rm x86.Operand, size uint8) (Slot, bool) {
	switch a := m.effective(rm); {
	case a.Form == Constant:
		return Slot{Disp: a.Off, Size: size}, true
	case a.Form == Symbolic && !a.Dirty && a.Bits == 64:
		return Slot{Base: a.Sym, Disp: a.Off, Size: size}, true
	}
	return Slot{}, false
}

// load returns what a memory operand holds.
func (m *Machine) load(rm x86.Operand, size uint8) Value {
	if at, ok := m.place(rm, size); ok {
		return m.SlotAt(at)
	}
	if v, ok := m.effective(rm).Pointee(size); ok {
		return v
	}
	v := m.Symbols.Fresh(Loaded)
	v.Bits = min(64, size*8)
	return v
}

// store writes memory.
func (m *Machine) store(rm x86.Operand, size int, v Value) {
	at, ok := m.place(rm, uint8(min(size, 255)))
	switch {
	case m.isInFrame(rm) && at.Base != FrameSymbol:
		m.Memory.overwriteElement()
	case ok:
		m.Memory.overwrite(at)
	default:
		m.Memory.forgetPointed()
	}
	if ok && size <= 8 {
		m.Memory.hold(at, v)
	}
}

// isInFrame says whether a memory operand lies in the frame, if perhaps nobody knows where.
func (m *Machine) isInFrame(rm x86.Operand) bool {
	return m.pointsToFrame(rm.Base) || m.pointsToFrame(rm.Index)
}

func (m *Machine) pointsToFrame(reg int8) bool {
	return reg >= 0 && m.Regs[reg].Form == Symbolic && m.Regs[reg].Sym == FrameSymbol
}

// Branch notes what the direction of the conditional jump that ends the block says about the value
// compared.
func (m *Machine) Branch(condition byte, taken bool, block int) {
	c := &m.compare
	if !c.valid || c.v.Form != Symbolic {
		return
	}
	const longest = 1 << 20 // entries of a table
	if !taken {
		condition ^= 1
	}
	v, most := c.v, c.with
	switch {
	case condition == x86.BelowOrEqual, condition == x86.Equal:
	case condition == x86.Below && most > 0:
		most--
	case condition == x86.AboveOrEqual && c.size == 4 && most >= 1<<32-longest:
		// At least 2^32 - k: what is k more wraps around to less than k.
		v = m.Symbols.displaced(v, 1<<32-int64(most), 32)
		most = 1<<32 - 1 - most
	default:
		return
	}
	if most <= longest && v.Form == Symbolic && !v.Dirty {
		m.bounds = append(m.bounds,
			Bound{Sym: v.Sym, off: v.Off, bits: v.Bits, Max: most, Compared: true,
				Check: m.locate(v, block)})
	}
}

// locate finds where the symbolic value v lies, give or take a constant, while the flags of its
// comparison hold.
func (m *Machine) locate(v Value, block int) Check {
	size := v.Bits / 8
	if m.Symbols[v.Sym].Source == Named || v.Dirty {
		return NoCheck
	}
	for reg, held := range m.Regs {
		if held.Form == Symbolic && held.Sym == v.Sym && held.Bits >= v.Bits {
			at := x86.Operand{Reg: int8(reg), Base: -1, Index: -1, Scale: 1, Size: size}
			return Check{Block: block, Index: at, Bias: v.Off - held.Off}
		}
	}
	for _, c := range m.Memory.Cells {
		held := c.Value
		if c.At.Base != FrameSymbol || c.At.Size < size || held.Form != Symbolic ||
			held.Sym != v.Sym || held.Bits < v.Bits {
			continue
		}
		for _, reg := range []int8{x86.RBP, x86.RSP} {
			if p := m.Regs[reg]; p.Form == Symbolic && p.Sym == FrameSymbol && p.Bits == 64 {
				at := x86.Operand{Mem: true, Reg: -1, Base: reg, Index: -1, Scale: 1,
					Disp: c.At.Disp - p.Off, Size: size}
				return Check{Block: block, Index: at, Bias: v.Off - held.Off}
			}
		}
	}
	return NoCheck
}

// SlotAt returns what is known of that place in memory, or a new symbol for it.
func (m *Machine) SlotAt(at Slot) Value {
	if v, ok := m.Memory.find(at); ok {
		if v.Form == Symbolic && at.Base != FrameSymbol {
			m.Symbols[v.Sym].Reread = true
		}
		return v
	}
	v := m.Symbols.Fresh(Loaded)
	m.Symbols[v.Sym].Slot, m.Symbols[v.Sym].Stored = at, at.Base == FrameSymbol &&
		m.Memory.hasStored(at)
	if at.Size < 8 {
		v.Bits = at.Size * 8
	}
	m.Memory.hold(at, v)
	return v
}
