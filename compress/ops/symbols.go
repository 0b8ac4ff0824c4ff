package ops

import "math/bits"

// MaxSymbols is the number of symbols that an alphabet may have: half of the 32-bit numbers, the
// other half names the rules of grammars.
const MaxSymbols = 1 << 31

// A Meaning is what a symbol stands for: a path, or a mark.
type Meaning struct {
	IsMark  bool
	Routine int    // of a path
	Path    uint64 // of a path: its number in the routine
	Mark    Mark
	N       uint64 // of a mark
}

// Symbols is the alphabet of a program: one symbol for each distinct (routine, path) and each
// distinct (mark, n), numbered densely from 0 in the order first seen (Larus 1999, section 3.3). A
// mark is a symbol of its own so that no subpath crosses one unnoticed.
//
// All threads' recorders share one alphabet, from one goroutine. A look-up probes one table and
// allocates nothing once the symbol is known; memory is 16 bytes a symbol and 8 to 16 for its
// slots. The zero value is an empty alphabet.
type Symbols struct {
	keys  []key
	slots []uint64 // upper half: the key's hash; lower half: the symbol + 1; 0: empty
	shift uint     // a slot's index is the top bits of the hash: hash32 >> shift
}

// A key is a path of routine owner, or, where owner is negative, the mark ^owner.
type key struct {
	number uint64
	owner  int32
}

func (k key) hash() uint32 {
	h := (k.number + uint64(uint32(k.owner))<<40) * 0x9E3779B97F4A7C15
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> 32)
}

// Symbol returns the symbol of a path of a routine. The routine's number must be below 2^31.
func (s *Symbols) Symbol(routine int, path uint64) uint32 {
	return s.symbol(key{path, int32(routine)})
}

// MarkSymbol returns the symbol of a mark.
func (s *Symbols) MarkSymbol(m Mark, n uint64) uint32 {
	return s.symbol(key{n, ^int32(m)})
}

// Len returns the number of symbols; they are numbered from 0.
func (s *Symbols) Len() int { return len(s.keys) }

// Bytes returns the memory that the alphabet holds. While it grows it takes half as much again for
// a moment.
func (s *Symbols) Bytes() uint64 { return 16*uint64(cap(s.keys)) + 8*uint64(cap(s.slots)) }

// Meaning returns what a symbol stands for. The symbol must be below Len.
func (s *Symbols) Meaning(sym uint32) Meaning {
	k := s.keys[sym]
	if k.owner < 0 {
		return Meaning{IsMark: true, Mark: Mark(^k.owner), N: k.number}
	}
	return Meaning{Routine: int(k.owner), Path: k.number}
}

func (s *Symbols) symbol(k key) uint32 {
	h := k.hash()
	if len(s.slots) > 0 {
		mask := uint32(len(s.slots) - 1)
		for i := h >> s.shift; s.slots[i] != 0; i = (i + 1) & mask {
			e := s.slots[i]
			if uint32(e>>32) == h && s.keys[uint32(e)-1] == k {
				return uint32(e) - 1
			}
		}
	}
	return s.add(k, h)
}

func (s *Symbols) add(k key, h uint32) uint32 {
	if int64(len(s.keys)) == MaxSymbols {
		panic("ops: more than 2^31 distinct paths and marks")
	}
	if 8*(len(s.keys)+1) > 5*len(s.slots) {
		s.grow()
	}
	s.keys = append(s.keys, k)
	s.place(uint64(h)<<32 | uint64(len(s.keys)))
	return uint32(len(s.keys) - 1)
}

func (s *Symbols) place(entry uint64) {
	mask := uint32(len(s.slots) - 1)
	i := uint32(entry>>32) >> s.shift
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = entry
}

func (s *Symbols) grow() {
	old := s.slots
	s.slots = make([]uint64, max(64, 2*len(old)))
	s.shift = 32 - uint(bits.TrailingZeros(uint(len(s.slots))))
	for _, e := range old {
		if e != 0 {
			s.place(e)
		}
	}
}
