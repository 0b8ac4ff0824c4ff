package sweep

import (
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
	symbols := f.Image.Symbols()
	for i := 0; i < len(symbols); {
		addr, size := symbols[i].Addr, uint64(0)
		for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
			size = max(size, symbols[i].Size)
		}
		s := f.Image.SectionAt(addr)
		if s == nil || !s.Exec || startup[f.Names[addr]] || f.IsStub(addr) ||
			f.Code.FindPiece(addr) >= 0 {
			continue
		}
		end := f.Code.nextPiece(addr, s.Addr+uint64(len(s.Data)))
		if i < len(symbols) {
			end = min(end, symbols[i].Addr)
		}
		if size > 0 && size < end-addr {
			end = addr + size
		}
		list = append(list, &cfg.Routine{Addr: addr, Symbol: f.Names[addr],
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
	end := s.Addr + uint64(len(s.Data))
	for at := s.Addr; at < end; {
		if p := c.FindPiece(at); p >= 0 {
			at = c.Pieces[p].Hi
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
		q := cfg.Insn{Addr: addr + uint64(at), Inst: in}
		if q.Kind.IsRelative() {
			visit(q.Target())
		}
		EachOperand(&q, code[at:at+int(in.Len)], absolute, visit)
		at += int(in.Len)
	}
}
