package sequitur

import "math/bits"

// A digramTable finds a digram by its two values: open addressing over slots that hold a hash and
// the digram's left node, sorted but for the empty ones between them. Each digram of the grammar is
// in it once, but for the pending one; of equal digrams that overlap (aaa) it holds one.
type digramTable struct {
	slots []uint64 // upper half: the digram's hash, lower half: the left node; 0: empty
	homes uint32
	used  uint32
}

const (
	minHomes     = 32
	digramMargin = 8 // slots behind those that are anybody's home; the last one stays empty
)

func digramHash(a, b uint32) uint32 {
	high, low := bits.Mul64(uint64(a)^0x9E3779B97F4A7C15, uint64(b)^0xBF58476D1CE4E5B9)
	return uint32((high ^ low) >> 16)
}

func entry(a, b, n uint32) uint64 { return uint64(digramHash(a, b))<<32 | uint64(n) }

func newDigramTable() digramTable {
	return digramTable{slots: allocate[uint64](slotsFor(minHomes)), homes: minHomes}
}

func slotsFor(homes uint32) int { return int(homes + homes/16 + digramMargin) }

// home is the first slot where an entry may be.
func (t *digramTable) home(e uint64) uint32 {
	high, _ := bits.Mul32(uint32(e>>32), t.homes)
	return high
}

// find returns the left node of the recorded digram a b, or 0.
func (t *digramTable) find(nodes *arena, a, b uint32) uint32 {
	first := entry(a, b, 0)
	for _, e := range t.slots[t.home(first):] {
		switch {
		case e < first:
			if e == 0 {
				return 0
			}
		case e>>32 != first>>32:
			return 0
		default:
			n := uint32(e)
			if node := nodes.at(n); node.value == a && nodes.at(node.next).value == b {
				return n
			}
		}
	}
	return 0
}

// firstGuess returns the left node of the digram a b if that is recorded in the first slot where it
// may be, or 0: what most digrams need, without a branch.
func (t *digramTable) firstGuess(a, b uint32) (n uint32) {
	first := entry(a, b, 0)
	if e := t.slots[t.home(first)]; e>>32 == first>>32 {
		n = uint32(e)
	}
	return n
}

// insert records the digram a b at left node n; it must not be in the table.
func (t *digramTable) insert(a, b, n uint32) {
	if 4*t.used >= 3*t.homes {
		t.grow()
	}
	for e := entry(a, b, n); !t.place(e); {
		t.grow()
	}
	t.used++
}

// place puts an entry where it belongs and moves those behind it, and reports false if there is no
// room but the last slot.
func (t *digramTable) place(e uint64) bool {
	i := t.home(e)
	for t.slots[i] != 0 && t.slots[i] < e {
		i++
	}
	end := i
	for t.slots[end] != 0 {
		end++
	}
	if int(end) == len(t.slots)-1 {
		return false
	}
	for ; end > i; end-- {
		t.slots[end] = t.slots[end-1]
	}
	t.slots[i] = e
	return true
}

// grow makes the table larger by a quarter, where it stands: its entries go to the end, and from
// there, the first one first, to their places. No home moves up by more than the table has grown,
// so that no entry is overwritten.
func (t *digramTable) grow() {
	was := len(t.slots)
	t.homes += t.homes / 4
	t.slots = resize(t.slots, slotsFor(t.homes))
	entries := t.slots[len(t.slots)-was:]
	copy(entries, t.slots)
	clear(t.slots[:len(t.slots)-was])
	free := uint32(0)
	for i, e := range entries {
		if e != 0 {
			entries[i] = 0
			at := max(t.home(e), free)
			t.slots[at] = e
			free = at + 1
		}
	}
}

// move records at node to the digram a b, which is recorded at node from.
func (t *digramTable) move(a, b, from, to uint32) {
	t.remove(a, b, from)
	t.insert(a, b, to)
}

// remove forgets the digram a b if it is recorded at left node n, and moves those behind it that
// are not at home.
func (t *digramTable) remove(a, b, n uint32) {
	e := entry(a, b, n)
	i := t.home(e)
	for t.slots[i] != e {
		if t.slots[i] == 0 || t.slots[i] > e {
			return
		}
		i++
	}
	for ; t.slots[i+1] != 0 && t.home(t.slots[i+1]) <= i; i++ {
		t.slots[i] = t.slots[i+1]
	}
	t.slots[i] = 0
	t.used--
}

func (t *digramTable) bytes() uint64 { return 8 * uint64(len(t.slots)) }
