package sweep

import (
	"slices"
	"sort"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

const noUnwind = "no unwind information"

// startup are the functions of crti.o and crtbegin.o, which the compiler links to every program and
// which are none of its own.
var startup = map[string]bool{"_init": true, "_fini": true, "frame_dummy": true,
	"register_tm_clones": true, "deregister_tm_clones": true, "__do_global_dtors_aux": true}

// Uncovered lists, by address, the functions that symbols name and no frame description entry
// covers, as hand-written assembly. Such a function goes on to the next one, but no further than
// its size, if that is known.
func (f *File) Uncovered() (list []*cfg.Routine) {
	symbols, piece := f.Image.Symbols(), 0
	for i := 0; i < len(symbols); {
		addr, size := symbols[i].Addr, uint64(0)
		for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
			size = max(size, symbols[i].Size)
		}
		for piece < len(f.Code.ends) && f.Code.ends[piece] <= addr {
			piece++
		}
		if piece < len(f.Code.Pieces) && f.Code.Pieces[piece].Lo <= addr {
			continue
		}
		s := f.Image.SectionAt(addr)
		if s == nil || !s.Exec || startup[f.NameAt(addr)] || f.IsStub(addr) {
			continue
		}
		end := f.Code.nextPiece(addr, s.Addr+uint64(len(s.Data)))
		if i < len(symbols) {
			end = min(end, symbols[i].Addr)
		}
		if size > 0 && size < end-addr {
			end = addr + size
		}
		list = append(list, &cfg.Routine{Addr: addr, Symbol: f.NameAt(addr),
			Ranges: [][2]uint64{{addr, end}}, LeftOut: noUnwind, Cause: noUnwind})
	}
	return list
}

// nextPiece returns where the first piece behind addr begins, or end if that comes first.
func (c *Code) nextPiece(addr, end uint64) uint64 {
	i := sort.Search(len(c.Pieces), func(i int) bool { return c.Pieces[i].Lo > addr })
	if i < len(c.Pieces) {
		end = min(end, c.Pieces[i].Lo)
	}
	return end
}

// eachNamedUncovered calls back with what the code names that no frame description entry covers.
// Nobody sees its calls and jumps made: it names where they lead, too.
func (c *Code) eachNamedUncovered(im *image.Image, visit func(addr uint64)) {
	for i := range im.Sections {
		if s := &im.Sections[i]; s.Exec && !IsStubs(s) {
			c.EachUncovered(s,
				func(lo,
					hi uint64) {
					eachNamedIn(s.Data[lo-s.Addr:hi-s.Addr], lo, !im.PIE, visit)
				})
		}
	}
}

// EachUncovered calls back for each part of a section that no frame description entry covers.
func (c *Code) EachUncovered(s *image.Section, visit func(lo, hi uint64)) {
	at, end := s.Addr, s.Addr+uint64(len(s.Data))
	i, _ := slices.BinarySearch(c.ends, at+1)
	for ; at < end && i < len(c.Pieces) && c.Pieces[i].Lo < end; i++ {
		if lo := c.Pieces[i].Lo; at < lo {
			visit(at, lo)
		}
		at = c.ends[i]
	}
	if at < end {
		visit(at, end)
	}
}

func eachNamedIn(code []byte, addr uint64, absolute bool, visit func(addr uint64)) {
	for at := 0; at < len(code); {
		in, ok := x86.Decode(code[at:])
		if !ok {
			at++
			continue
		}
		q := cfg.Insn{Addr: addr + uint64(at), Inst: in}
		if q.Kind.IsRelative() {
			visit(q.Target())
		}
		EachOperand(&q, code[at:at+int(in.Len)], absolute, visit)
		at += int(in.Len)
	}
}
