package loads

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// A Read is one read of a run.
type Read struct {
	Addr   uint64
	Size   int // bytes
	Bytes  [MostBytes]byte
	Failed bool
}

// A Process is what a program is run on.
type Process interface {
	// Read reads memory as it was at the hit, or fails and leaves the bytes as they are.
	Read(addr uint64, to []byte) bool
	// Continuation finds where a program goes on behind a return: that of After.
	Continuation(returnAddress uint64) (step uint32, ok bool)
	// Bias is what the addresses in the process of a look's image are more than those of the plan.
	Bias(look int) uint64
}

// Run runs the load programs of a hit, as the kernel does: that of what lies behind if asked to, as
// where the state is whole and no handler has interrupted, then that of the outcome. registers are
// the general ones by their hardware numbers and the base of fs, of which some are unknown, bit N
// for the Nth: reads whose addresses follow from these are left out, and so is all behind a choice
// that does. Each other read is given to each, in their order. It returns whether traced code may
// be left before the next hit, which it may where the hit would take more steps or reads than there
// are. Reads of a process that replays are those that the kernel made: their addresses follow from
// registers and from what was read before. It does not allocate.
func (p *Plan) Run(
	look, outcome int, behind bool, registers *[17]uint64, unknown uint32, in Process,
	each func(r *Read),
) (left bool) {
	l := &p.Looks[look]
	m := interpreters.Get().(*interpreter)
	defer interpreters.Put(m)
	m.plan, m.in, m.each, m.left = p, in, each, l.Leaves[outcome&1]
	m.reads, m.steps, m.stored, m.blurred = 0, MostSteps, 0, 0
	m.hides, m.hidden = unknown != 0, [2]uint64{uint64(unknown&0xffff | unknown>>16&1<<FSBase)}
	copy(m.cells[:], registers[:16])
	m.cells[ImageBias], m.cells[FSBase] = in.Bias(look), registers[16]
	for i, pc := range [...]uint32{l.Behind, l.First[outcome&1]} {
		if i == 0 && !behind {
			continue
		}
		for ; pc != 0 && m.steps > 0; m.steps-- {
			if m.hides && !m.hide(&m.plan.Steps[pc]) {
				return true
			}
			pc = m.step(pc)
		}
		m.left = m.left || pc != 0
	}
	return m.left
}

// interpreters are used again: one is 2 KB. No program uses a cell or a place that it has not
// written.
var interpreters = sync.Pool{New: func() any { return &interpreter{} }}

type interpreter struct {
	plan  *Plan
	in    Process
	each  func(r *Read)
	cells [Cells]uint64
	// with room for what a pick names beyond
	places [MostReads][MostBytes + 8]byte
	// where these were read, and the last that was stored
	addresses [MostReads]uint64
	stores    [MostStores]stored
	stored    int
	reads     int
	steps     int // that may still be made
	left      bool
	read      Read
	// cells that follow from registers that are unknown, if some are, and whether the address of
	// the next read does
	hides, unseen bool
	hidden        [2]uint64
	// places whose addresses follow from registers that are unknown; all, if a store's do, or what
	// it has stored
	blurred uint32
}

// A stored is what a program has stored.
type stored struct {
	address, is uint64
	size        uint8
}

// hide notes whether what a step makes follows from registers that are unknown. It returns whether
// it is known what comes behind it.
func (m *interpreter) hide(s *Step) (goesOn bool) {
	isHidden := m.isHidden(s.A) || m.isHidden(s.B)
	switch s.Op {
	case End, Leave:
		return true
	case Branch, Switch, Return:
		return !isHidden
	case Fetch:
		m.unseen = isHidden
		if isHidden {
			m.blurred |= 1 << (s.Dst % MostReads)
		}
		return true
	case Store:
		if isHidden {
			m.blurred = 1<<MostReads - 1
		}
		return true
	case Pick: // of what was read, wherever that was, unless that has been stored
		isHidden = m.stored > 0 && m.blurred>>(s.A%MostReads)&1 != 0
	}
	bit := uint64(1) << (s.Dst & 63)
	if m.hidden[s.Dst>>6&1] &^= bit; isHidden {
		m.hidden[s.Dst>>6&1] |= bit
	}
	return true
}

func (m *interpreter) isHidden(cell uint8) bool {
	return m.hidden[cell>>6&1]>>(cell&63)&1 != 0
}

// step makes one step and returns the next one, 0 at the end.
func (m *interpreter) step(pc uint32) (next uint32) {
	s := &m.plan.Steps[pc]
	x := m.cells[s.A%Cells]
	y := m.cells[s.B%Cells]<<(s.Scale&3) + uint64(int64(s.Imm))
	next = pc + 1
	switch s.Op {
	case Fetch:
		if m.reads == MostReads {
			m.left = true
			return 0
		}
		m.fetch(s, x+y)
	case Pick:
		m.cells[s.Dst%Cells] = extended(m.pick(s), s)
	case Extend:
		m.cells[s.Dst%Cells] = extended(x, s)
	case Branch:
		if !holds(s, x, y) {
			return next
		}
	case Switch:
		cases := m.plan.Cases[s.Jump:]
		if i := truncated(x+y, s.Size); i < uint64(cases[0]) {
			return cases[1+i]
		}
		return next
	case Return:
		to, ok := m.in.Continuation(x)
		m.left = m.left || !ok
		return to
	case Leave:
		m.left = true
	case Store:
		m.stores[m.stored%MostStores] = stored{x + uint64(int64(s.Imm)), m.cells[s.B%Cells], s.Size}
		m.stored++
	case Sum, Subtract, And, Or, Xor, ShiftLeft, ShiftRight, ShiftRightSigned, Multiply:
		m.cells[s.Dst%Cells] = truncated(computed(s, x, y), s.Size)
	default:
		return 0
	}
	return next + s.Jump
}

// pick is what was read at a place, or what has been stored there since.
func (m *interpreter) pick(s *Step) uint64 {
	at := s.Imm & (MostBytes - 1)
	addr := m.addresses[s.A%MostReads] + uint64(at)
	for i := m.stored - 1; i >= max(m.stored-MostStores, 0); i-- {
		x := &m.stores[i%MostStores]
		d := addr - x.address
		if d < uint64(x.size) && d+uint64(s.Size) <= uint64(x.size) {
			return x.is >> (8 * d)
		}
	}
	return binary.LittleEndian.Uint64(m.places[s.A%MostReads][at:])
}

func (m *interpreter) fetch(s *Step, addr uint64) {
	r := &m.read
	*r = Read{Addr: addr, Size: int(s.Size)}
	bytes := r.Bytes[:min(r.Size, MostBytes)]
	if r.Failed = !m.in.Read(addr, bytes); r.Failed {
		clear(bytes)
	}
	copy(m.places[s.Dst%MostReads][:], bytes)
	m.addresses[s.Dst%MostReads] = addr
	m.reads++
	if !m.hides || !m.unseen {
		m.each(r)
	}
}

func computed(s *Step, x, y uint64) uint64 {
	count := y & 31
	if s.Size == 8 {
		count = y & 63
	}
	switch s.Op {
	case Sum:
		return x + y
	case Subtract:
		return x - y
	case And:
		return x & y
	case Or:
		return x | y
	case Xor:
		return x ^ y
	case ShiftLeft:
		return x << count
	case ShiftRight:
		return truncated(x, s.Size) >> count
	case ShiftRightSigned:
		return uint64(int64(signed(x, s.Size)) >> count)
	}
	return x * y
}

// truncated is the low bytes of a number, zeroes above.
func truncated(v uint64, size uint8) uint64 {
	shift := 64 - 8*min(uint(size), 8)
	return v << shift >> shift
}

// signed is the low bytes of a number, their sign above.
func signed(v uint64, size uint8) uint64 {
	shift := 64 - 8*min(uint(size), 8)
	return uint64(int64(v<<shift) >> shift)
}

func extended(v uint64, s *Step) uint64 {
	if s.Sign != 0 {
		return signed(v, s.Size)
	}
	return truncated(v, s.Size)
}

// holds says whether a condition holds of two numbers, as the processor has it of its flags.
func holds(s *Step, x, y uint64) bool {
	x, y = truncated(x, s.Size), truncated(y, s.Size)
	result, carry, overflow := x&y, false, false
	top := uint64(1) << ((8*uint(s.Size) - 1) & 63)
	if s.Sign == 0 {
		var borrow uint64
		result, borrow = bits.Sub64(x, y, 0)
		carry = borrow != 0
		overflow = (x^y)&(x^result)&top != 0
	}
	zero, sign := truncated(result, s.Size) == 0, result&top != 0
	is := false
	switch s.Condition >> 1 & 7 {
	case 0:
		is = overflow
	case 1:
		is = carry
	case 2:
		is = zero
	case 3:
		is = carry || zero
	case 4:
		is = sign
	case 6:
		is = sign != overflow
	case 7:
		is = zero || sign != overflow
	}
	return is != (s.Condition&1 != 0)
}
