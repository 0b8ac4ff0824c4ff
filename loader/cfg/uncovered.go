package cfg

import (
	"sort"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

const noUnwind = "no unwind information"

// startup are the functions of crti.o and crtbegin.o, which the compiler links to every program and which are none of its own.
var startup = map[string]bool{"_init": true, "_fini": true, "frame_dummy": true, "register_tm_clones": true, "deregister_tm_clones": true, "__do_global_dtors_aux": true}

// uncovered lists, by address, the functions that symbols name and no frame description entry covers, as hand-written assembly. Such a function goes on to the next one, but no further than its size, if that is known.
func (r *recovery) uncovered(names map[uint64]string) (list []*Routine) {
	symbols := r.im.Symbols()
	for i := 0; i < len(symbols); {
		addr, size := symbols[i].Addr, uint64(0)
		for ; i < len(symbols) && symbols[i].Addr == addr; i++ {
			size = max(size, symbols[i].Size)
		}
		s := r.im.SectionAt(addr)
		if s == nil || !s.Exec || startup[names[addr]] || r.isStub(addr) || r.findPiece(addr) >= 0 {
			continue
		}
		end := r.nextPiece(addr, s.Addr+uint64(len(s.Data)))
		if i < len(symbols) {
			end = min(end, symbols[i].Addr)
		}
		if size > 0 && size < end-addr {
			end = addr + size
		}
		list = append(list, &Routine{Addr: addr, Symbol: names[addr], Ranges: [][2]uint64{{addr, end}}, LeftOut: noUnwind, Cause: noUnwind})
	}
	return list
}

// nextPiece returns where the first piece behind addr begins, or end if that comes first.
func (c *code) nextPiece(addr, end uint64) uint64 {
	i := sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].Lo > addr })
	if i < len(c.pieces) {
		end = min(end, c.pieces[i].Lo)
	}
	return end
}

// addUncovered adds what the code mentions that no frame description entry covers. Nobody sees its calls and jumps made: they are mentions too.
func (m *mentions) addUncovered(im *image.Image, c *code) {
	for i := range im.Sections {
		s := &im.Sections[i]
		end := s.Addr + uint64(len(s.Data))
		for at := s.Addr; s.Exec && !isStubs(s) && at < end; {
			if p := c.findPiece(at); p >= 0 {
				at = c.pieces[p].Hi
				continue
			}
			hi := c.nextPiece(at, end)
			m.addCode(s.Data[at-s.Addr:hi-s.Addr], at, !im.PIE)
			at = hi
		}
	}
}

func (m *mentions) addCode(code []byte, addr uint64, absolute bool) {
	for at := 0; at < len(code); {
		in, ok := x86.Decode(code[at:])
		if !ok {
			at++
			continue
		}
		q := Insn{Addr: addr + uint64(at), Inst: in}
		if isRelative(q.Kind) {
			m.add(q.target())
		}
		m.addOperands(&q, code[at:at+int(in.Len)], absolute)
		at += int(in.Len)
	}
}
