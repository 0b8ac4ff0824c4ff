package cfg

import (
	"cmp"
	"slices"
	"sort"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

const noUnwind = "no unwind information"

// startup are the functions of crti.o and crtbegin.o, which the compiler links to every program and
// which are none of its own.
var startup = map[string]bool{"_init": true, "_fini": true, "frame_dummy": true,
	"register_tm_clones": true, "deregister_tm_clones": true, "__do_global_dtors_aux": true}

// uncovered lists, by address, the functions that symbols name and no frame description entry
// covers, as hand-written assembly. Such a function goes on to the next one, but no further than
// its size, if that is known.
func (f *file) uncovered() (list []*Routine) {
	symbols := f.im.Symbols()
	for i := 0; i < len(symbols); {
		addr, size := symbols[i].Addr, uint64(0)
		for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
			size = max(size, symbols[i].Size)
		}
		s := f.im.SectionAt(addr)
		if s == nil || !s.Exec || startup[f.names[addr]] || f.isStub(addr) ||
			f.code.findPiece(addr) >= 0 {
			continue
		}
		end := f.code.nextPiece(addr, s.Addr+uint64(len(s.Data)))
		if i < len(symbols) {
			end = min(end, symbols[i].Addr)
		}
		if size > 0 && size < end-addr {
			end = addr + size
		}
		list = append(list, &Routine{Addr: addr, Symbol: f.names[addr],
			Ranges: [][2]uint64{{addr, end}}, LeftOut: noUnwind, Cause: noUnwind})
	}
	return list
}

// startsDestructors returns the length of how __do_global_dtors_aux begins, which crtbegin.o has
// and with it nearly every program: it asks whether it has run. 0: code does not begin so. What it
// asks for is any distance, which in one program of 128 looks like a call, or jump, to some other
// routine.
func startsDestructors(code []byte, addr uint64) (length int) {
	const aligned = 16
	if addr%aligned != 0 {
		return 0
	}
	q, ok := x86.Decode(code)
	if ok && q.IsEndbr64() {
		length = int(q.Len)
		q, ok = x86.Decode(code[length:])
	}
	if !ok || q.Operation() != x86.Cmp {
		return 0
	}
	asks := q.Effects(code[length:], 0)
	length += int(q.Len)
	jump, ok := x86.Decode(code[length:])
	isByte := asks.Dst.RIP && asks.Dst.Size == 1 && asks.HasImm && asks.Imm == 0
	if !isByte || !ok || jump.Condition() != x86.NotEqual || jump.Len != 2 {
		return 0
	}
	return length
}

// nextPiece returns where the first piece behind addr begins, or end if that comes first.
func (c *code) nextPiece(addr, end uint64) uint64 {
	i := sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].Lo > addr })
	if i < len(c.pieces) {
		end = min(end, c.pieces[i].Lo)
	}
	return end
}

// eachNamedUncovered calls back with what the code names that no frame description entry covers.
// Nobody sees its calls and jumps made: it names where they lead, too.
func (c *code) eachNamedUncovered(im *image.Image, visit func(addr uint64)) {
	for i := range im.Sections {
		if s := &im.Sections[i]; s.Exec && !isStubs(s) {
			c.eachUncovered(s,
				func(lo,
					hi uint64) {
					eachNamedIn(s.Data[lo-s.Addr:hi-s.Addr], lo, !im.PIE, visit)
				})
		}
	}
}

// eachUncovered calls back for each part of a section that no frame description entry covers.
func (c *code) eachUncovered(s *image.Section, visit func(lo, hi uint64)) {
	end := s.Addr + uint64(len(s.Data))
	for at := s.Addr; at < end; {
		if p := c.findPiece(at); p >= 0 {
			at = c.pieces[p].Hi
			continue
		}
		hi := c.nextPiece(at, end)
		visit(at, hi)
		at = hi
	}
}

func eachNamedIn(code []byte, addr uint64, absolute bool, visit func(addr uint64)) {
	for at := 0; at < len(code); {
		in, ok := x86.Decode(code[at:])
		if !ok {
			at++
			continue
		}
		q := Insn{Addr: addr + uint64(at), Inst: in}
		if q.Kind.IsRelative() {
			visit(q.target())
		}
		eachOperand(&q, code[at:at+int(in.Len)], absolute, visit)
		at += int(in.Len)
	}
}

// Unlisted is how many bytes of code are in no routine: linkage stubs, and what neither unwind
// information nor a symbol makes known, as start-up code. Padding does not count.
func (p *Program) Unlisted() (bytes int) {
	var listed [][2]uint64
	for _, r := range p.Routines {
		listed = append(listed, r.Ranges...)
	}
	slices.SortFunc(listed, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
	for i := range p.Image.Sections {
		s := &p.Image.Sections[i]
		if !s.Exec {
			continue
		}
		at, end := s.Addr, s.Addr+uint64(len(s.Data))
		for _, x := range listed {
			if x[1] > at && x[0] < end {
				bytes += x86.SizeWithoutPadding(s.Data[at-s.Addr : max(at, x[0])-s.Addr])
				at = min(x[1], end)
			}
		}
		bytes += x86.SizeWithoutPadding(s.Data[at-s.Addr:])
	}
	return bytes
}

// eachUnreached calls back for each part of a routine that no instruction reached covers.
func (b *builder) eachUnreached(d *draft, visit func(code []byte, addr uint64)) {
	for _, k := range d.pieces {
		p := &b.code.pieces[k]
		at := p.Lo
		for i := p.first; i <= p.last; i++ {
			next := p.Hi
			if i < p.last {
				if !b.isReached(i) {
					continue
				}
				next = b.code.insns[i].Addr
			}
			if at < next {
				visit(p.code[at-p.Lo:next-p.Lo], at)
			}
			if i < p.last {
				at = max(at, b.code.insns[i].end())
			}
		}
	}
}
