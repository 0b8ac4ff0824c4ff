package cfg

import (
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A machine executes instructions symbolically, to find what an indirect jump's target is made of.
// It models what compilers use to compute one, and gives the result of everything else a symbol of
// its own.
type machine struct {
	regs    [16]value
	memory  []cell
	symbols []symbol
	bounds  []bound
	compare comparison

	frameAliased bool // pointers may lead into the frame

	stored         []slot // in the frame, since the run began
	storedAnywhere bool   // in the frame, at a place that is not known
}

// A cell is a known place in memory.
type cell struct {
	slot
	value value
}

// A comparison is what the flags hold: those of v - with, both of size bytes.
type comparison struct {
	valid bool
	size  uint8
	v     value
	with  uint64
}

// frameSymbol stands for the canonical frame address.
const frameSymbol = 1

// slotFrame is where the frame pointer of a routine is taken to be whose frame address is in a
// slot. Its true distance, which is not the same in all activations, does not matter as long as
// nothing else is there.
const slotFrame = 1 << 40

// reset prepares the machine to run from an instruction where cfa is the rule. All registers hold
// symbols, the stack or frame pointer by what the rule says.
func (m *machine) reset(cfa image.CFA) {
	m.memory, m.bounds = m.memory[:0], m.bounds[:0]
	m.symbols = append(m.symbols[:0], symbol{}, symbol{})
	m.compare = comparison{}
	m.stored, m.storedAnywhere = m.stored[:0], false
	for i := range m.regs {
		m.regs[i] = m.fresh(initial)
		m.symbols[m.regs[i].sym].reg = int8(i)
	}
	frame := value{sym: frameSymbol, bits: 64, off: -int64(cfa.Off)}
	switch cfa.Reg {
	case x86.DwarfRSP:
		m.regs[x86.RSP] = frame
	case x86.DwarfRBP:
		m.regs[x86.RBP] = frame
	case image.Slot:
		m.regs[x86.RBP] = value{sym: frameSymbol, bits: 64, off: slotFrame}
	}
}

// step executes one instruction that is neither a jump nor a call.
func (m *machine) step(e *x86.Effects) {
	if !m.execute(e) {
		m.forget(e)
	}
	if e.FlagsWritten()&^x86.DF != 0 {
		isComparison := e.Operation == x86.Cmp || e.Operation == x86.Sub // compareWith has noted it
		m.compare.valid = m.compare.valid && isComparison
	}
}

// call forgets what a call, or a system call, may change: the registers in the set, and memory.
func (m *machine) call(clobbers x86.Set) {
	m.forgetRegisters(clobbers, result)
	m.compare.valid = false
	m.forgetMemory()
}

func (m *machine) forgetRegisters(set x86.Set, from source) {
	for reg := 0; set != 0; reg, set = reg+1, set>>1 {
		if set&1 != 0 {
			m.regs[reg] = m.fresh(from)
		}
	}
}

// forgetMemory forgets what a call may change, or a store through a pointer.
func (m *machine) forgetMemory() {
	m.forgetCells(func(c *cell) bool { return c.base != frameSymbol || m.frameAliased })
}

func (m *machine) forgetCells(which func(c *cell) bool) {
	m.memory = slices.DeleteFunc(m.memory, func(c cell) bool { return which(&c) })
}

// forget gives everything that an instruction may write a new symbol.
func (m *machine) forget(e *x86.Effects) {
	m.forgetRegisters(e.Written()&^x86.SetOf(x86.RSP), computed)
	switch by, ok := e.StackDelta(); {
	case !ok:
		m.regs[x86.RSP] = m.fresh(computed)
	case by != 0:
		m.regs[x86.RSP] = m.sum(m.regs[x86.RSP], number(uint64(by)), 64)
		if by < 0 {
			m.store(stackTop(), -by, m.fresh(computed))
		}
	}
	to, bytes, ok := e.Stores()
	switch {
	case e.StoresUnseen():
		m.forgetMemory()
	case !ok:
	case e.StoresFar():
		m.storedAnywhere = true
		m.forgetCells(func(*cell) bool { return true })
	default:
		m.store(to, bytes, m.fresh(computed))
	}
}

// read returns what a register holds, zero-extended from the operand's size.
func (m *machine) read(o x86.Operand) value {
	if o.Reg >= x86.AH {
		return value{sym: m.fresh(computed).sym, bits: 8}
	}
	return m.narrow(m.regs[o.Reg], o.Size*8)
}

// write sets a register's low bytes; a write of four clears the others.
func (m *machine) write(o x86.Operand, v value) {
	switch {
	case o.Size >= 4:
		m.regs[o.Reg] = m.narrow(v, o.Size*8)
	case o.Reg >= x86.AH:
		m.regs[o.Reg-x86.AH] = m.fresh(computed)
	case v.form == symbolic:
		v.bits, v.dirty = min(v.bits, o.Size*8), true
		m.regs[o.Reg] = v
	case v.form == constant && m.regs[o.Reg].form == constant:
		low := int64(1)<<(o.Size*8) - 1
		m.regs[o.Reg].off = m.regs[o.Reg].off&^low | v.off&low
	default:
		m.regs[o.Reg] = m.fresh(computed)
	}
}

// get returns the value of an operand.
func (m *machine) get(o x86.Operand) value {
	if o.Mem {
		return m.load(o, o.Size)
	}
	return m.read(o)
}

// set writes an operand.
func (m *machine) set(o x86.Operand, v value) {
	if o.Mem {
		m.store(o, int(o.Size), v)
		return
	}
	m.write(o, v)
}

// effective returns the address that a memory operand stands for.
func (m *machine) effective(rm x86.Operand) value {
	v := number(uint64(rm.Disp))
	if rm.Base >= 0 {
		v = m.sum(m.regs[rm.Base], v, 64)
	}
	if rm.Index < 0 {
		return v
	}
	if rm.Scale > 1 || m.regs[rm.Index].form >= scaled || v.form >= scaled {
		return m.sum(v, m.times(m.regs[rm.Index], rm.Scale), 64)
	}
	return m.indexed(v, m.regs[rm.Index])
}

// place returns the slot that a memory operand is, when its address has no index.
func (m *machine) place(rm x86.Operand, size uint8) (slot, bool) {
	switch a := m.effective(rm); {
	case a.form == constant:
		return slot{disp: a.off, size: size}, true
	case a.form == symbolic && !a.dirty && a.bits == 64:
		return slot{base: a.sym, disp: a.off, size: size}, true
	}
	return slot{}, false
}

// load returns what a memory operand holds.
func (m *machine) load(rm x86.Operand, size uint8) value {
	if at, ok := m.place(rm, size); ok {
		return m.slotAt(at)
	}
	if v, ok := m.effective(rm).pointee(size); ok {
		return v
	}
	v := m.fresh(loaded)
	v.bits = min(64, size*8)
	return v
}

// store writes memory. A place in the frame that an operand names is another than what a pointer leads to, unless
// that may lead into the frame.
func (m *machine) store(rm x86.Operand, size int, v value) {
	at, ok := m.place(rm, uint8(min(size, 255)))
	switch {
	case m.isInFrame(rm) && at.base != frameSymbol: // an element of an array there
		m.storedAnywhere = true
		m.forgetCells(func(c *cell) bool { return c.base != 0 })
	case ok && at.base == 0: // an absolute address is none of the frame's
		m.forgetCells(func(c *cell) bool { return c.base != frameSymbol })
	case ok && at.base == frameSymbol:
		m.stored = append(m.stored, at)
		m.forgetCells(func(c *cell) bool {
			if c.base == frameSymbol {
				return c.overlaps(at)
			}
			return m.frameAliased && c.base != 0
		})
	default:
		m.forgetMemory()
	}
	if ok && size <= 8 {
		m.memory = append(m.memory, cell{slot: at, value: v})
	}
}

// isInFrame says whether a memory operand lies in the frame, if perhaps nobody knows where.
func (m *machine) isInFrame(rm x86.Operand) bool {
	return m.pointsToFrame(rm.Base) || m.pointsToFrame(rm.Index)
}

func (m *machine) pointsToFrame(reg int8) bool {
	return reg >= 0 && m.regs[reg].form == symbolic && m.regs[reg].sym == frameSymbol
}

// branch notes what the direction of the conditional jump that ends the block says about the value
// compared.
func (m *machine) branch(condition byte, taken bool, block int) {
	c := &m.compare
	if !c.valid || c.v.form != symbolic {
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
		v = m.displaced(v, 1<<32-int64(most), 32)
		most = 1<<32 - 1 - most
	default:
		return
	}
	if most <= longest && v.form == symbolic && !v.dirty {
		m.bounds = append(m.bounds, bound{sym: v.sym, off: v.off, bits: v.bits, max: most, compared: true, check: m.locate(v, block)})
	}
}

// locate finds where the symbolic value v lies, give or take a constant, while the flags of its
// comparison hold.
func (m *machine) locate(v value, block int) check {
	size := v.bits / 8
	if m.symbols[v.sym].source == named || v.dirty {
		return noCheck
	}
	for reg, held := range m.regs {
		if held.form == symbolic && held.sym == v.sym && held.bits >= v.bits {
			at := x86.Operand{Reg: int8(reg), Base: -1, Index: -1, Scale: 1, Size: size}
			return check{block: block, index: at, bias: v.off - held.off}
		}
	}
	for _, c := range m.memory {
		held := c.value
		if c.base != frameSymbol || c.size < size || held.form != symbolic || held.sym != v.sym || held.bits < v.bits {
			continue
		}
		for _, reg := range []int8{x86.RBP, x86.RSP} {
			if p := m.regs[reg]; p.form == symbolic && p.sym == frameSymbol && p.bits == 64 {
				at := x86.Operand{Mem: true, Reg: -1, Base: reg, Index: -1, Scale: 1, Disp: c.disp - p.off, Size: size}
				return check{block: block, index: at, bias: v.off - held.off}
			}
		}
	}
	return noCheck
}
