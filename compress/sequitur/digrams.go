package sequitur

// A digramTable finds a digram by its two values: open addressing over slots that hold a hash and the digram's left node. Each digram of
// the grammar is in it once, but for the pending one; of equal digrams that overlap (aaa) it holds one.
type digramTable struct {
	slots []uint64 // upper half: the digram's hash, lower half: the left node; 0: empty
	shift uint32   // hash >> shift is a digram's home slot
	mask  uint32
	used  int
}

const minDigramBits = 6

func newDigramTable() digramTable { return sizedDigramTable(minDigramBits) }

func sizedDigramTable(bits uint32) digramTable {
	return digramTable{slots: make([]uint64, 1<<bits), shift: 32 - bits, mask: 1<<bits - 1}
}

func digramHash(a, b uint32) uint32 {
	h := (uint64(a) | uint64(b)<<32) * 0x9E3779B97F4A7C15
	h ^= h >> 29
	h *= 0xBF58476D1CE4E5B9
	return uint32(h >> 32)
}

// find returns the left node of the recorded digram a b, or 0.
func (t *digramTable) find(nodes []node, a, b uint32) uint32 {
	h := digramHash(a, b)
	for i := h >> t.shift; ; i = (i + 1) & t.mask {
		e := t.slots[i]
		if e == 0 {
			return 0
		}
		if uint32(e>>32) == h {
			n := uint32(e)
			if nodes[n].value == a && nodes[nodes[n].next].value == b {
				return n
			}
		}
	}
}

// insert records the digram a b at left node n; it must not be in the table.
func (t *digramTable) insert(a, b, n uint32) {
	if 8*t.used >= 5*len(t.slots) {
		t.grow()
	}
	t.used++
	t.place(uint64(digramHash(a, b))<<32 | uint64(n))
}

func (t *digramTable) place(entry uint64) {
	i := uint32(entry>>32) >> t.shift
	for t.slots[i] != 0 {
		i = (i + 1) & t.mask
	}
	t.slots[i] = entry
}

func (t *digramTable) grow() {
	bigger := sizedDigramTable(32 - t.shift + 1)
	bigger.used = t.used
	for _, e := range t.slots {
		if e != 0 {
			bigger.place(e)
		}
	}
	*t = bigger
}

// remove forgets the digram a b if it is recorded at left node n, and closes the gap so that probing needs no tombstones.
func (t *digramTable) remove(a, b, n uint32) {
	h := digramHash(a, b)
	entry := uint64(h)<<32 | uint64(n)
	hole := h >> t.shift
	for t.slots[hole] != entry {
		if t.slots[hole] == 0 {
			return
		}
		hole = (hole + 1) & t.mask
	}
	for i := (hole + 1) & t.mask; t.slots[i] != 0; i = (i + 1) & t.mask {
		home := uint32(t.slots[i]>>32) >> t.shift
		if (i-home)&t.mask >= (i-hole)&t.mask {
			t.slots[hole] = t.slots[i]
			hole = i
		}
	}
	t.slots[hole] = 0
	t.used--
}
