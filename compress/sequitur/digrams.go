package sequitur

import "math/bits"

// A digramTable finds a digram by its two values: open addressing over slots that hold a hash and the digram's left node. Each digram of
// the grammar is in it once, but for the pending one; of equal digrams that overlap (aaa) it holds one.
//
// It is made of segments that grow one by one, by less than double: little memory is empty or copied at any time.
type digramTable struct {
	segments [1 << segmentBits]segment
}

const (
	segmentBits  = 2
	minSlots     = 8
	digramMargin = 8 // slots behind those that are anybody's home; the last one stays empty
)

// A segment holds the digrams whose hashes begin alike, in the order of their hashes as far as they are at home.
type segment struct {
	slots []uint64 // upper half: the digram's hash, lower half: the left node; 0: empty
	homes uint32
	used  uint32
}

func digramHash(a, b uint32) uint32 {
	high, low := bits.Mul64(uint64(a)^0x9E3779B97F4A7C15, uint64(b)^0xBF58476D1CE4E5B9)
	return uint32((high ^ low) >> 16)
}

func newDigramTable() digramTable {
	var t digramTable
	for i := range t.segments {
		t.segments[i] = newSegment(minSlots)
	}
	return t
}

func newSegment(homes uint32) segment {
	return segment{slots: allocate[uint64](slotsFor(homes)), homes: homes}
}

func slotsFor(homes uint32) int { return int(homes + homes/16 + digramMargin) }

func (t *digramTable) segment(h uint32) *segment { return &t.segments[h>>(32-segmentBits)] }

// home is the first slot where a digram may be.
func (s *segment) home(h uint32) uint32 {
	high, _ := bits.Mul32(h<<segmentBits, s.homes)
	return high
}

// find returns the left node of the recorded digram a b, or 0.
func (t *digramTable) find(nodes *arena, a, b uint32) uint32 {
	h := digramHash(a, b)
	s := t.segment(h)
	for _, e := range s.slots[s.home(h):] {
		if e == 0 {
			return 0
		}
		if uint32(e>>32) == h {
			n := uint32(e)
			if node := nodes.at(n); node.value == a && nodes.at(node.next).value == b {
				return n
			}
		}
	}
	return 0
}

// near brings what find will look at for the digram a b into the cache. Its result means nothing but that the compiler cannot leave the load out, for which
// nothing waits.
func (t *digramTable) near(a, b uint32) uint64 {
	h := digramHash(a, b)
	s := t.segment(h)
	return s.slots[s.home(h)]
}

// insert records the digram a b at left node n; it must not be in the table.
func (t *digramTable) insert(a, b, n uint32) {
	h := digramHash(a, b)
	s := t.segment(h)
	if 4*s.used >= 3*s.homes {
		s.grow()
	}
	for !s.place(h, n) {
		s.grow()
	}
	s.used++
}

// place puts an entry into the first empty slot from its home on, and reports false if there is none but the last.
func (s *segment) place(h, n uint32) bool {
	for i := s.home(h); i < uint32(len(s.slots))-1; i++ {
		if s.slots[i] == 0 {
			s.slots[i] = uint64(h)<<32 | uint64(n)
			return true
		}
	}
	return false
}

// grow makes a segment larger by two fifths.
func (s *segment) grow() {
	for homes := s.homes; ; {
		homes += homes*2/5 + 2
		bigger := newSegment(homes)
		if bigger.takeAll(s.slots) {
			release(s.slots)
			s.slots, s.homes = bigger.slots, homes
			return
		}
		release(bigger.slots)
	}
}

// takeAll puts the entries among slots into an empty segment, and reports false if there is no room for one.
func (s *segment) takeAll(slots []uint64) bool {
	for _, e := range slots {
		if e != 0 && !s.place(uint32(e>>32), uint32(e)) {
			return false
		}
	}
	return true
}

// move records at node to the digram a b, which is recorded at node from.
func (t *digramTable) move(a, b, from, to uint32) {
	h := digramHash(a, b)
	s := t.segment(h)
	i := s.home(h)
	for s.slots[i] != uint64(h)<<32|uint64(from) {
		i++
	}
	s.slots[i] = uint64(h)<<32 | uint64(to)
}

// remove forgets the digram a b if it is recorded at left node n, and closes the gap so that probing needs no tombstones.
func (t *digramTable) remove(a, b, n uint32) {
	h := digramHash(a, b)
	entry := uint64(h)<<32 | uint64(n)
	s := t.segment(h)
	hole := s.home(h)
	for s.slots[hole] != entry {
		if s.slots[hole] == 0 {
			return
		}
		hole++
	}
	for i := hole + 1; s.slots[i] != 0; i++ {
		if s.home(uint32(s.slots[i]>>32)) <= hole {
			s.slots[hole] = s.slots[i]
			hole = i
		}
	}
	s.slots[hole] = 0
	s.used--
}

func (t *digramTable) bytes() (n uint64) {
	for i := range t.segments {
		n += 8 * uint64(len(t.segments[i].slots))
	}
	return n
}
