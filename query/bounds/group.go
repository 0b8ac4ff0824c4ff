package bounds

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// mostPairs is the largest number of paths p!q that a group may have.
const mostPairs = 10_000_000

// What keeps a group from being solved.
var (
	ErrTooMany   = errors.New("it has more than 10,000,000 pairs of paths")
	ErrSaturated = errors.New("a counter has reached 2^64-1, and stands for that or more")
)

// A Group is what counts say of all interesting paths p!q of one loop, or of one call site and one
// routine that it calls. The paths p and q are numbered from 0, each on its own.
type Group struct {
	// how often each p ran, and each q, where it can have been part of one of the pairs: F_p - X_p
	// and F_q - E_q of a loop (section 2.2), F_p and F_q of a call (section 3.2)
	First, Second []uint64
	// of each q, which extension it begins with: those of equal numbers are not told apart
	Extension []int
	// how often p ran, followed by an extension: OF in the equations; what is not there is 0
	Counts []Count
	// There are no Counts: it is only known that all pairs together ran so often (equation 9)
	Alone bool
	Calls uint64
}

// A Count is of an overlapping path: a path p and the extension behind it.
type Count struct {
	First, Extension int
	N                uint64
}

// A Bound says how often the interesting path p!q ran: Lower to Upper times.
type Bound struct {
	First, Second int32 // p and q
	Lower, Upper  uint64
}

// Solve returns the bounds of each pair p!q that may have run; the others have not. They are the
// fixpoint of equations 7 and 8 for a loop, 17 and 18 for a call, 13 and 14 where there are no
// counts of overlapping paths. They are in the order of Counts, then of q. It takes time and memory
// in proportion to the pairs that begin as Counts say: more than 10,000,000 are ErrTooMany. A count
// that stopped at its end is ErrSaturated, and counts that contradict each other are an error.
func (g *Group) Solve() ([]Bound, error) {
	if g.Alone {
		return g.solveAlone()
	}
	members := map[int][]int{}
	for q, e := range g.Extension {
		members[e] = append(members[e], q)
	}
	var pairs int
	for _, c := range g.Counts {
		if c.N == math.MaxUint64 {
			return nil, ErrSaturated
		}
		if pairs += len(members[c.Extension]); pairs > mostPairs {
			return nil, ErrTooMany
		}
	}
	all := make([]Bound, 0, pairs)
	for _, c := range g.Counts {
		from := len(all)
		for _, q := range members[c.Extension] {
			all = append(all, Bound{int32(c.First), int32(q), 0,
				min(g.First[c.First], g.Second[q], c.N)})
		}
		if err := settle(all[from:], c.N); err != nil {
			return nil, fmt.Errorf("path %d and extension %d: %w", c.First, c.Extension, err)
		}
	}
	return possible(all), nil
}

func (g *Group) solveAlone() ([]Bound, error) {
	if g.Calls == math.MaxUint64 {
		return nil, ErrSaturated
	}
	if len(g.First) > 0 && len(g.Second) > mostPairs/len(g.First) {
		return nil, ErrTooMany
	}
	all := make([]Bound, 0, len(g.First)*len(g.Second))
	for p, n := range g.First {
		for q, m := range g.Second {
			all = append(all, Bound{int32(p), int32(q), 0, min(n, m, g.Calls)})
		}
	}
	if err := settle(all, g.Calls); err != nil {
		return nil, err
	}
	return possible(all), nil
}

func possible(all []Bound) []Bound {
	kept := all[:0]
	for _, b := range all {
		if b.Upper > 0 {
			kept = append(kept, b)
		}
	}
	return kept
}

// settle narrows bounds until they do not change any more, where it is known how often all of them
// ran together: each at most as often as the lower bounds of the others leave, and at least as
// often as the upper bounds of the others do not reach. Lower bounds begin at 0, and upper ones at
// the total or less: then the second round finds that nothing changes. For let d be by how much the
// upper bounds exceed the total, all together: each lower bound becomes upper - d, or 0, so that
// those of the others never reach more than the total less the upper bound of the one.
func settle(bounds []Bound, total uint64) error {
	for changed := true; changed; {
		changed = false
		var least, most sum
		for _, b := range bounds {
			least.add(b.Lower)
			most.add(b.Upper)
		}
		if least.isAbove(total) || !most.isAtLeast(total) {
			return fmt.Errorf("counts contradict each other: %d in all, each within its bounds "+
				"%s to %s", total, least, most)
		}
		for i, b := range bounds {
			// the sum of the lower bounds is not above the total, and so fits into its low half
			upper := min(b.Upper, total-(least.low-b.Lower))
			lower := b.Lower
			if others := most.less(b.Upper); !others.isAtLeast(total) {
				lower = max(lower, total-others.low)
			}
			if upper != b.Upper || lower != b.Lower {
				bounds[i].Lower, bounds[i].Upper, changed = lower, upper, true
			}
		}
	}
	return nil
}

// A sum is one of counts, in 128 bits.
type sum struct{ high, low uint64 }

func (s *sum) add(n uint64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, n, 0)
	s.high += carry
}

func (s sum) less(n uint64) sum {
	low, borrow := bits.Sub64(s.low, n, 0)
	return sum{s.high - borrow, low}
}

func (s sum) isAbove(n uint64) bool   { return s.high > 0 || s.low > n }
func (s sum) isAtLeast(n uint64) bool { return s.high > 0 || s.low >= n }

// String prints what is beyond 2^64-1 as that.
func (s sum) String() string {
	if s.high > 0 {
		return "more than 2^64-1"
	}
	return fmt.Sprint(s.low)
}
