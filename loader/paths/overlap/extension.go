package overlap

import (
	"fmt"
	"math"
	"slices"

	"wpptrace/internal/saturating"
)

// An Extension is what an overlapping path adds to its first path, behind the back edge, call or
// return that ends that.
type Extension struct {
	Blocks []int
	// how many predicates it has, its end included, less one: the least degree that tells it from
	// what begins alike
	Degree int
}

// Extensions are the extensions of some degree that begin at a block. They are read-only and safe
// for concurrent use.
type Extensions struct {
	Total uint64 // the numbers are those below it
	// OfDegree is how many of these have this degree, and none that is less: the number that
	// tables 3, 6 and 7 multiply.
	OfDegree uint64
	Most     int // the greatest useful degree: a greater one tells no more apart
	Start    int // the block at which they begin
	table    *table
	left     int // predicates
}

// A table has the counts of all extensions within a loop, or a routine, by block and by how many
// predicates they have left.
type table struct {
	g      *Graph
	loop   *Loop // nil: the routine
	index  []int32
	most   []int // by index: how many predicates there are on the way at most, the end included
	degree int
	width  int      // the least of the degree plus one, and of most
	count  []uint64 // by index, then by predicates left, from 1
	exact  []uint64 // the same, of those that have as many
}

// A Numbering has the extensions of some degree of a routine. It is read-only and safe for
// concurrent use.
type Numbering struct {
	g     *Graph
	k     int
	whole *table
	loops []*table // by loop; nil: it is left out
}

// MostDegree is the greatest degree: no path has so many predicates.
const MostDegree = 1 << 20

// Number numbers the extensions of degree k, 0 or more, of a routine. Degrees beyond use cost no
// more than the greatest useful one. Cost: the length of the routine, and that of each of its
// loops, times k.
func (g *Graph) Number(k int) (*Numbering, error) {
	if k < 0 || k > MostDegree {
		return nil, fmt.Errorf("number overlapping paths of %s: degree %d is not from 0 to %d",
			g.routine.Name, k, MostDegree)
	}
	n := &Numbering{g: g, k: k, whole: newTable(g, nil, k)}
	for i := range g.loops {
		var t *table
		if g.loops[i].LeftOut == "" {
			t = newTable(g, &g.loops[i], k)
		}
		n.loops = append(n.loops, t)
	}
	return n, nil
}

// From returns the extensions of paths that begin at a block: behind a call, or at an entry.
func (n *Numbering) From(block int) (*Extensions, error) { return n.whole.from(block) }

// Loop returns the extensions of paths that end with a back edge of the loop. It fails for one that
// is left out.
func (n *Numbering) Loop(loop int) (*Extensions, error) {
	if err := n.g.check(loop); err != nil {
		return nil, err
	}
	return n.loops[loop].from(n.g.loops[loop].Head)
}

func newTable(g *Graph, loop *Loop, k int) *table {
	t := &table{g: g, loop: loop, degree: k, index: make([]int32, len(g.onward))}
	size := 0
	for b := range t.index {
		t.index[b] = -1
		if loop == nil || loop.Has(b) {
			t.index[b] = int32(size)
			size++
		}
	}
	t.most = make([]int, size)
	for _, b := range g.order {
		if t.index[b] < 0 {
			continue
		}
		own, most := 0, 0
		if g.predicates[b] {
			own = 1
		}
		if t.ends(b) {
			most = 1 - own
		}
		for _, to := range t.onward(b) {
			most = max(most, t.most[t.index[to]])
		}
		t.most[t.index[b]] = own + most
		t.width = max(t.width, own+most)
	}
	t.width = min(t.width, k+1)
	t.count = make([]uint64, size*t.width)
	t.exact = make([]uint64, size*t.width)
	for _, b := range g.order {
		if t.index[b] >= 0 {
			for left := 1; left <= t.width; left++ {
				t.fill(b, left)
			}
		}
	}
	return t
}

func (t *table) in(b int) bool { return t.index[b] >= 0 }

// ends reports whether an extension may end with a block where predicates are left.
func (t *table) ends(b int) bool {
	return t.g.ends[b] || slices.ContainsFunc(t.g.onward[b], func(to int) bool { return !t.in(to) })
}

// onward returns where an extension goes on behind a block, ascending.
func (t *table) onward(b int) []int {
	to := t.g.onward[b]
	if t.loop == nil || !slices.ContainsFunc(to, func(to int) bool { return !t.in(to) }) {
		return to
	}
	var in []int
	for _, to := range to {
		if t.in(to) {
			in = append(in, to)
		}
	}
	return in
}

// fill counts the extensions from a block with predicates left, where those from what follows it
// are counted.
func (t *table) fill(b, left int) {
	at := t.at(b, left)
	if t.g.predicates[b] {
		if left--; left == 0 {
			t.count[at], t.exact[at] = 1, 1
			return
		}
	}
	if t.ends(b) {
		t.count[at]++
		if left == 1 && !t.g.predicates[b] {
			t.exact[at]++
		}
	}
	for _, to := range t.onward(b) {
		next := t.at(to, left)
		t.count[at] = saturating.Add(t.count[at], t.count[next])
		t.exact[at] = saturating.Add(t.exact[at], t.exact[next])
	}
}

func (t *table) at(b, left int) int { return int(t.index[b])*t.width + left - 1 }

func (t *table) from(block int) (*Extensions, error) {
	x := &Extensions{Start: block, Most: t.most[t.index[block]] - 1, table: t, left: t.width}
	x.Total = t.count[t.at(block, x.left)]
	if t.width == t.degree+1 {
		x.OfDegree = t.exact[t.at(block, x.left)]
	}
	if x.Total == math.MaxUint64 {
		return nil, fmt.Errorf("number overlapping paths from block %d of %s: there are more than "+
			"2^64", block, t.g.routine.Name)
	}
	return x, nil
}

// Encode returns the number of the extension that blocks begin with, which are those of a path, or
// of its part within the loop. It fails where they are no path from the start on.
func (x *Extensions) Encode(blocks []int) (number uint64, err error) {
	t := x.table
	if len(blocks) == 0 || blocks[0] != x.Start {
		return 0, fmt.Errorf("encode extension: it does not begin at block %d", x.Start)
	}
	left := x.left
	for i, b := range blocks {
		if t.g.predicates[b] {
			if left--; left == 0 {
				return number, nil
			}
		}
		if i+1 == len(blocks) {
			break
		}
		if t.ends(b) {
			number++
		}
		found := false
		for _, to := range t.onward(b) {
			if found = to == blocks[i+1]; found {
				break
			}
			number += t.count[t.at(to, left)]
		}
		if !found {
			return 0, fmt.Errorf("encode extension: the edge from block %d to %d ends it", b,
				blocks[i+1])
		}
	}
	if last := blocks[len(blocks)-1]; !t.ends(last) {
		return 0, fmt.Errorf("encode extension: none ends at block %d", last)
	}
	return number, nil
}

// Decode returns the extension that has the number.
func (x *Extensions) Decode(number uint64) (Extension, error) {
	if number >= x.Total {
		return Extension{}, fmt.Errorf("decode extension %d: there are %d", number, x.Total)
	}
	t, left, out := x.table, x.left, Extension{Degree: -1}
	for b := x.Start; ; {
		out.Blocks = append(out.Blocks, b)
		if t.g.predicates[b] {
			out.Degree++
			if left--; left == 0 {
				return out, nil
			}
		}
		if t.ends(b) {
			if number == 0 {
				if !t.g.predicates[b] {
					out.Degree++
				}
				return out, nil
			}
			number--
		}
		for _, to := range t.onward(b) {
			n := t.count[t.at(to, left)]
			if number < n {
				b = to
				break
			}
			number -= n
		}
	}
}
