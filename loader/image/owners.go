package image

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// An owned range of code is an owner's, and what is in it of a greater depth another one's.
type owned struct {
	lo, hi uint64
	owner  int
	depth  int
}

// ownedFrom says whose the code from addr on is.
type ownedFrom struct {
	addr  uint64
	owner int32
}

const nowhere = -1 // there is no owner

// own adds ranges of code to a list. The linker leaves those of code that it dropped: these begin
// outside of all executable segments.
func (im *Image) own(list []owned, ranges [][2]uint64, owner, depth int) []owned {
	for _, r := range ranges {
		if _, ok := im.FileOffset(r[0]); ok && r[0] < r[1] {
			list = append(list, owned{r[0], r[1], owner, depth})
		}
	}
	return list
}

// Open ranges are those that an address is in: a heap that has the deepest on top, and of several
// such the one that begins last.
type openRanges []owned

func (h openRanges) Len() int { return len(h) }
func (h openRanges) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].depth, h[i].depth), cmp.Compare(h[j].lo, h[i].lo),
		cmp.Compare(h[j].owner, h[i].owner)) < 0
}
func (h openRanges) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *openRanges) Push(r any)   { *h = append(*h, r.(owned)) }
func (h *openRanges) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}

// flatten says of each address who owns it: of the ranges that it is in, the deepest one does, and
// of several such the one that begins last.
func flatten(list []owned) []ownedFrom {
	slices.SortFunc(list, func(a, b owned) int { return cmp.Compare(a.lo, b.lo) })
	var rows []ownedFrom
	add := func(addr uint64, owner int) {
		if n := len(rows); n > 0 && rows[n-1].addr == addr {
			rows = rows[:n-1]
		}
		if n := len(rows); n == 0 || rows[n-1].owner != int32(owner) {
			rows = append(rows, ownedFrom{addr, int32(owner)})
		}
	}
	var open openRanges
	end := func(before uint64) {
		for len(open) > 0 && open[0].hi <= before {
			at, owner := open[0].hi, nowhere
			for len(open) > 0 && open[0].hi <= at {
				heap.Pop(&open)
			}
			if len(open) > 0 {
				owner = open[0].owner
			}
			add(at, owner)
		}
	}
	for _, r := range list {
		end(r.lo)
		heap.Push(&open, r)
		add(r.lo, open[0].owner)
	}
	end(math.MaxUint64)
	return slices.Clip(rows)
}

// ownerOf returns whose the code at an address is, or nowhere.
func ownerOf(rows []ownedFrom, addr uint64) int {
	i, found := slices.BinarySearchFunc(rows, addr,
		func(r ownedFrom, addr uint64) int { return cmp.Compare(r.addr, addr) })
	if found {
		i++
	}
	if i == 0 {
		return nowhere
	}
	return int(rows[i-1].owner)
}
