package cfg

import (
	"encoding/binary"

	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// findTaken finds the routines that may be entered through a pointer. What a file says of an address is what a linker can: the address itself and a few bytes more
// (a pointer with a tag), or its distance from something else.
func (r *recovery) findTaken() (taken []bool) {
	taken = make([]bool, len(r.drafts))
	for _, d := range r.drafts {
		end := r.pieces[r.findPiece(d.addr)].Hi
		_, named := r.mentions.next(d.addr, min(d.addr+maxTag+1, end))
		taken[d.id] = named || r.halves.has(d.addr)
	}
	f := &distances{recovery: r, taken: taken, code: r.pieces[0].Lo, size: r.pieces[len(r.pieces)-1].Hi - r.pieces[0].Lo}
	for i := range r.im.Sections {
		s := &r.im.Sections[i]
		if !isUnwindData(s) {
			f.fromWords(s)
			f.fromTables(s)
		}
	}
	f.fromOffsetTable()
	return taken
}

// maxTag is what a tag adds to a pointer at most: functions are aligned to 16 bytes.
const maxTag = 15

// distances finds routines whose addresses are given as distances.
type distances struct {
	*recovery
	taken      []bool
	code, size uint64 // where code lies
}

func (f *distances) note(addr uint64) {
	if addr-f.code >= f.size {
		return
	}
	if id := f.routineAt(f.find(addr)); id >= 0 {
		f.taken[id] = true
	}
}

// fromWords finds distances from the word itself, as in relative pointers.
func (f *distances) fromWords(s *image.Section) {
	for at := int(-s.Addr & 3); at+4 <= len(s.Data); at += 4 {
		addr := s.Addr + uint64(at)
		f.note(addr + distance(s.Data[at:]))
		if addr%8 == 0 && at+8 <= len(s.Data) {
			f.note(addr + binary.LittleEndian.Uint64(s.Data[at:]))
		}
	}
}

// fromTables finds distances from where a table begins, as in relative virtual tables. A table is taken to begin at each address that is mentioned, and to go on as
// long as its words lead to code.
func (f *distances) fromTables(s *image.Section) {
	const most = 1024 // words
	end := s.Addr + uint64(len(s.Data))
	for base, ok := f.mentions.next(s.Addr, end); ok; base, ok = f.mentions.next(base+1, end) {
		for at := base - s.Addr; at+4 <= uint64(len(s.Data)) && at < base-s.Addr+4*most; at += 4 {
			to := base + distance(s.Data[at:])
			if f.findPiece(to) < 0 {
				break
			}
			f.note(to)
		}
	}
}

func distance(b []byte) uint64 { return uint64(int64(int32(binary.LittleEndian.Uint32(b)))) }

// fromOffsetTable finds distances from the global offset table, as the large code model has them in instructions.
func (f *distances) fromOffsetTable() {
	var bases []uint64
	for i := range f.im.Sections {
		if s := &f.im.Sections[i]; s.Name == ".got" || s.Name == ".got.plt" {
			bases = append(bases, s.Addr)
		}
	}
	const movToRegister = 0xb8
	for i := range f.insns {
		q := &f.insns[i].Inst
		if q.Map != 0 || q.Op&0xf8 != movToRegister || addressImmediate(q) != 8 || q.Kind != x86.Other {
			continue
		}
		for _, base := range bases {
			f.note(base + immediate(f.bytes(i), 8))
		}
	}
}
