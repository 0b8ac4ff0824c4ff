package cfg

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A Program is the routines of an image. It is read-only.
type Program struct {
	Image    *image.Image
	Routines []*Routine // by entry address, left-out ones too; the index is Routine.ID
	// Outside are the parts of routines that are not recovered, as link-time addresses, ends
	// exclusive: they are in none of Routines. nil: all are recovered.
	Outside [][2]uint64

	covered []cover // what unwind information describes, by address
	facts   *Facts
}

// A cover is a range of code that is a part of a routine.
type cover struct {
	lo, hi  uint64
	routine *Routine
}

// Facts are what only a look at all routines of a program shows. Who recovers a program fills them
// in, and changes them no more when it has done so.
type Facts struct {
	// AddressTaken says by Routine.ID whether anything but a direct call or jump mentions the
	// routine.
	AddressTaken []bool
	Entries      map[uint64]*Routine // by entries besides Routine.Addr
	// Twice has entries of routines that may return twice, linkage stubs and slots of such.
	Twice        map[uint64]bool
	TwicePointed bool         // something names one of these otherwise than by calling it
	LoadsTwice   map[int]bool // routines that have such for calls of their own alone
	Imports      map[uint64]string
}

// NewProgram makes a program of routines in the order of their addresses: it gives them their
// numbers and names, and all of them are taken for mentioned until the facts say otherwise. It
// keeps the facts.
func NewProgram(im *image.Image, routines []*Routine, facts *Facts) *Program {
	p := &Program{Image: im, Routines: routines, facts: facts}
	facts.AddressTaken = make([]bool, len(routines))
	for id, r := range routines {
		r.ID, r.Name, facts.AddressTaken[id] = id, NameOf(r.Symbol, r.Addr), true
		if IsReturnsTwiceSymbol(r.Symbol) {
			facts.Twice[r.Addr] = true
		}
		for _, part := range r.parts {
			p.covered = append(p.covered, cover{part.Lo, part.Hi, r})
		}
	}
	slices.SortFunc(p.covered, func(a, b cover) int { return cmp.Compare(a.lo, b.lo) })
	return p
}

// NameOf returns the name of a routine with a symbol, "" if it has none, at an address.
func NameOf(symbol string, addr uint64) string {
	if symbol == "" {
		return fmt.Sprintf("fn_%x", addr)
	}
	return image.Demangle(symbol)
}

// At returns the routine whose entry is at addr, or nil.
func (p *Program) At(addr uint64) *Routine {
	if r := p.facts.Entries[addr]; r != nil {
		return r
	}
	i, ok := slices.BinarySearchFunc(p.Routines, addr,
		func(r *Routine, addr uint64) int { return cmp.Compare(r.Addr, addr) })
	if !ok {
		return nil
	}
	return p.Routines[i]
}

// Containing returns the routine that one of whose ranges covers addr, or nil.
func (p *Program) Containing(addr uint64) *Routine {
	i, ok := slices.BinarySearchFunc(p.covered, addr,
		func(c cover, addr uint64) int { return cmp.Compare(c.lo, addr) })
	if !ok {
		i--
	}
	if i < 0 || addr >= p.covered[i].hi {
		return nil
	}
	return p.covered[i].routine
}

// Callee returns where the call or tail jump that ends a block goes: a routine of the program, or
// the name of an imported function, called through its stub or its slot. It returns nil and "" when
// neither is known, as for a pointer, or the block ends otherwise.
func (p *Program) Callee(r *Routine, block int) (*Routine, string) {
	b := &r.Blocks[block]
	q := &b.Insns[len(b.Insns)-1]
	switch q.Kind {
	case x86.CallInd, x86.JmpInd:
		if q.IsRIPRelative() {
			_, rm, _ := q.Operands(r.Code(q), q.End())
			if name := p.facts.Imports[uint64(rm.Disp)]; name != "" {
				return nil, name
			}
			return p.InSlot(uint64(rm.Disp)), ""
		}
		return nil, ""
	case x86.Jcc, x86.Loop:
		if b.Succ[0] >= 0 {
			return nil, ""
		}
	case x86.Jmp:
		if b.End != Tail {
			return nil, ""
		}
	case x86.Call:
	default:
		return nil, ""
	}
	if to := p.At(b.Target); to != nil {
		return to, ""
	}
	return nil, p.facts.Imports[b.Target]
}

// InSlot returns the routine of this program whose address a slot of the global offset table holds,
// or nil.
func (p *Program) InSlot(addr uint64) *Routine {
	s := p.Image.SectionAt(addr)
	if s == nil || s.Name != ".got" {
		return nil
	}
	to, ok := p.Image.Relocations().At(addr)
	if b := p.Image.Bytes(addr, addr+8); !ok && len(b) == 8 {
		to = binary.LittleEndian.Uint64(b)
	}
	if slices.Contains(p.Image.Resolvers(), to) {
		return nil // what the resolver chooses will be there
	}
	return p.At(to)
}

// AddressTaken says whether anything but a direct call or jump mentions the routine entry: an
// instruction, a data word, a relocation, a dynamic symbol, the program's entry, a distance from
// elsewhere; code of a routine that is left out which control flow is not known to reach counts as
// such. It answers true for what is no routine's entry.
func (p *Program) AddressTaken(entry uint64) bool {
	r := p.At(entry)
	return r == nil || p.facts.AddressTaken[r.ID]
}
