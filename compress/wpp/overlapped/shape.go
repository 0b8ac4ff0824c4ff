package overlapped

import (
	"cmp"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

// A Shape is what of a routine its overlapping paths depend on. Blocks are indices in the routine's
// Blocks.
type Shape struct {
	Routine    int    // index in Snapshot.Routines
	Predicates []int  // blocks with two or more successors, ascending
	Loops      []Loop // by their heads, ascending
	Calls      []Call // by their blocks, ascending
}

// A Loop is a natural loop with all back edges to its head.
type Loop struct {
	Head   int
	Blocks []int // of its body, the head and inner loops included, ascending
	// why pairs over its back edges are not counted; "" if they are
	LeftOut string
}

// A Call is a block that ends in a direct call of, or a direct tail jump to, a traced routine.
type Call struct {
	Block   int
	Routine int // index in Snapshot.Routines
}

// IsPredicate reports whether a block has two or more successors.
func (s *Shape) IsPredicate(block int) bool {
	_, ok := slices.BinarySearch(s.Predicates, block)
	return ok
}

// LoopAt returns the index in Loops of the loop with that head, or -1.
func (s *Shape) LoopAt(head int) int {
	return search(len(s.Loops), func(i int) int { return cmp.Compare(s.Loops[i].Head, head) })
}

// CountedLoop returns the loop with that head, or nil if there is none, or it is left out.
func (s *Shape) CountedLoop(head int) *Loop {
	if i := s.LoopAt(head); i >= 0 && s.Loops[i].LeftOut == "" {
		return &s.Loops[i]
	}
	return nil
}

// ExtensionOf returns the extension that is all of a whole path of the routine or, behind a back
// edge, its part within that loop, which is none that is left out. Blocks are shared with the path.
func (s *Shape) ExtensionOf(y *wpp.Symbol) Extension {
	x := Extension{Routine: y.Routine, Loop: -1, Blocks: y.Blocks}
	if y.Start == ops.StartLoop {
		x.Loop = s.LoopAt(y.Blocks[0])
		x.Blocks = s.Loops[x.Loop].After(y.Blocks)
	}
	return x
}

// Callee returns the routine that the block calls, or tail-jumps to, if it is a traced one and
// known for sure, or -1.
func (s *Shape) Callee(block int) int {
	i := search(len(s.Calls), func(i int) int { return cmp.Compare(s.Calls[i].Block, block) })
	if i < 0 {
		return -1
	}
	return s.Calls[i].Routine
}

// search returns the index of what compares as equal, of a sorted list, or -1.
func search(n int, compare func(i int) int) int {
	lo, hi := 0, n
	for lo < hi {
		if mid := (lo + hi) / 2; compare(mid) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < n && compare(lo) == 0 {
		return lo
	}
	return -1
}

// Has reports whether a block is in the loop.
func (l *Loop) Has(block int) bool {
	_, ok := slices.BinarySearch(l.Blocks, block)
	return ok
}

// Before returns the part of a path within the loop whose back edge ends it: from the loop's head,
// or from its beginning, if it begins in the loop's midst. It is shared with the path.
func (l *Loop) Before(blocks []int) []int {
	return blocks[max(slices.Index(blocks, l.Head), 0):]
}

// After returns the part within the loop of a path that begins at its head. It is shared with the
// path.
func (l *Loop) After(blocks []int) []int {
	if out := slices.IndexFunc(blocks, func(b int) bool { return !l.Has(b) }); out >= 0 {
		return blocks[:out]
	}
	return blocks
}

// Extend returns how far an overlapping path of degree k follows a path, or its part within a loop:
// up to its k+1st predicate, or to its end. Of degree -1 that is nothing: plain path counts. It is
// shared with the path.
func (s *Shape) Extend(blocks []int, k int) []int {
	if k < 0 {
		return nil
	}
	for i, b := range blocks {
		if s.IsPredicate(b) {
			if k--; k < 0 {
				return blocks[:i+1]
			}
		}
	}
	return blocks
}
