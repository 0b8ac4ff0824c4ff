package paths

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/loader/cfg"
)

// figure3 is the graph of figure 3. Its blocks are in such an order that Ball and Larus's numbers
// are those of the figure: c comes before b, which is the second way from a.
func figure3() *cfg.Routine {
	return graph(
		block{cfg.Jcc, []int{a3, b3}},
		block{cfg.Jcc, []int{c3, b3}},
		block{cfg.Jcc, []int{d3, t3}},
		block{cfg.Fall, []int{c3}},
		block{cfg.Fall, []int{t3}},
		block{cfg.Ret, nil},
	)
}

const (
	s3 = iota
	a3
	c3
	b3
	d3
	t3
)

func prefer(t testing.TB, n *Numbering, interesting ...uint64) *Preferential {
	t.Helper()
	p, err := n.Prefer(interesting)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encode(t testing.TB, n *Numbering, blocks ...int) uint64 {
	t.Helper()
	number, err := n.Encode(Path{StartEntry, EndReturn, blocks})
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// TestFigure3 has every number of figure 3: weights, identifiers, aliases and the underflow.
// Section 2.3 gives sbcdt the identifier 2, which contradicts the weights: by these it is 1.
func TestFigure3(t *testing.T) {
	n := number(t, figure3())
	sacdt, sact := encode(t, n, s3, a3, c3, d3, t3), encode(t, n, s3, a3, c3, t3)
	sbct := encode(t, n, s3, b3, c3, t3)
	if got := []uint64{sacdt, sact, sbct}; !slices.Equal(got, []uint64{0, 1, 5}) {
		t.Fatalf("the interesting paths have the numbers %d", got)
	}
	p := prefer(t, n, sbct, sacdt, sact, sact)
	for _, test := range []struct {
		name     string
		from, to int
		want     Weights
	}{
		{"s-a", s3, a3, Weights{0, 0}}, {"s-b", s3, b3, Weights{4, 2}},
		{"a-c", a3, c3, Weights{0, 0}}, {"a-b", a3, b3, Weights{2, 0}}, // no interesting path
		{"b-c", b3, c3, Weights{0, -1}}, {"c-d", c3, d3, Weights{0, 0}},
		{"c-t", c3, t3, Weights{1, 1}}, {"d-t", d3, t3, Weights{0, 0}},
	} {
		if got, ends, _, _ := p.Step(test.from, test.to); got != test.want || ends {
			t.Errorf("%s: %+v, ends %v; want %+v", test.name, got, ends, test.want)
		}
	}
	if w, ok := p.Begin(s3, StartEntry); w != (Weights{}) || !ok {
		t.Errorf("begins with %+v, %v", w, ok)
	}
	if w := p.Finish(t3, EndReturn); w != (Weights{}) {
		t.Errorf("finishes with %+v", w)
	}
	if diff := cmp.Diff([]Identified{{0, 0}, {1, 1}, {5, 2}}, p.Paths()); diff != "" {
		t.Error(diff)
	}
	if p.Range() != 3 || p.Compactness() != 1 {
		t.Errorf("range %d, compactness %v", p.Range(), p.Compactness())
	}
	c := counter(t, p)
	for _, test := range []struct {
		name   string
		blocks []int
		want   Weights
		is     Outcome
	}{
		{"sacdt", []int{s3, a3, c3, d3, t3}, Weights{0, 0}, Interesting},
		{"sact", []int{s3, a3, c3, t3}, Weights{1, 1}, Interesting},
		{"sbct", []int{s3, b3, c3, t3}, Weights{5, 2}, Interesting},
		{"sbcdt", []int{s3, b3, c3, d3, t3}, Weights{4, 1}, Alias},
		{"sabct", []int{s3, a3, b3, c3, t3}, Weights{3, 0}, Alias},
		{"sabcdt", []int{s3, a3, b3, c3, d3, t3}, Weights{2, -1}, Underflow},
	} {
		w, err := p.Encode(Path{StartEntry, EndReturn, test.blocks})
		if is := c.Count(w); err != nil || w != test.want || is != test.is {
			t.Errorf("%s: %+v, %v, %v; want %+v, %v", test.name, w, is, err, test.want, test.is)
		}
	}
	if c.Of(0) != 1 || c.Of(1) != 1 || c.Of(2) != 1 || c.Total(Interesting) != 3 ||
		c.Total(Alias) != 2 || c.Total(Underflow) != 1 || c.Total(Overflow) != 0 {
		t.Errorf("%+v", c)
	}
}

func counter(t testing.TB, p *Preferential) *Counter {
	t.Helper()
	c, err := NewCounter(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// figure6 is the graph of figure 6 with its interesting paths: s to any of a, b, c, to d, to any of
// e, f, g, to t; each of a, b, c with two of e, f, g.
func figure6(t testing.TB) (n *Numbering, interesting []uint64) {
	n = number(t, graph(
		block{cfg.Table, []int{1, 2, 3}},
		block{cfg.Fall, []int{4}}, block{cfg.Fall, []int{4}}, block{cfg.Fall, []int{4}},
		block{cfg.Table, []int{5, 6, 7}},
		block{cfg.Fall, []int{8}}, block{cfg.Fall, []int{8}}, block{cfg.Fall, []int{8}},
		block{cfg.Ret, nil}))
	for _, way := range [][2]int{{1, 6}, {1, 7}, {2, 5}, {2, 7}, {3, 5}, {3, 6}} {
		interesting = append(interesting, encode(t, n, 0, way[0], 4, way[1], 8))
	}
	return n, interesting
}

// TestFigure6 finds by trying that the graph of figure 6 admits no perfect assignment (lemma 3),
// and that one identifier more is enough: figure 10 needs no more either.
func TestFigure6(t *testing.T) {
	n, interesting := figure6(t)
	p := prefer(t, n, interesting...)
	checkPreferential(t, n, p)
	perfect, best := len(interesting), int64(0)
	for size := perfect; best == 0; size++ {
		if assignable(size) {
			best = int64(size)
		}
	}
	if best != int64(perfect)+1 {
		t.Errorf("the best range is %d", best)
	}
	if p.Range() != best {
		t.Errorf("range %d, the best is %d", p.Range(), best)
	}
}

// assignable reports whether some weights u, v, w before d and x, y, z after it give the six paths
// of figure 6 different identifiers below a size. What is added before d may be taken away after
// it: the least before d is 0.
func assignable(size int) bool {
	for code := range size * size * size {
		before := [3]int{code % size, code / size % size, code / size / size}
		if min(before[0], before[1], before[2]) != 0 {
			continue
		}
		span := 2*size - 1 // of weights after d: from 1-size on
		for code := range span * span * span {
			after := [3]int{code%span + 1 - size, code/span%span + 1 - size,
				code/span/span + 1 - size}
			var ids []int
			for i := range before {
				for k := range after {
					if i != k {
						ids = append(ids, before[i]+after[k])
					}
				}
			}
			slices.Sort(ids)
			if ids[0] >= 0 && ids[len(ids)-1] < size && len(slices.Compact(ids)) == 6 {
				return true
			}
		}
	}
	return false
}

// TestFigure11 has two interesting paths with a hole between their identifiers, beside a third one
// that would fit into the hole: the intervals of edges do not overlap, so that it is not put there.
func TestFigure11(t *testing.T) {
	n, interesting := figure6(t)
	before := prefer(t, n, interesting...).Range()
	r := graph(
		block{cfg.Table, []int{1, 2, 3, 9}},
		block{cfg.Fall, []int{4}}, block{cfg.Fall, []int{4}}, block{cfg.Fall, []int{4}},
		block{cfg.Table, []int{5, 6, 7}},
		block{cfg.Fall, []int{8}}, block{cfg.Fall, []int{8}}, block{cfg.Fall, []int{8}},
		block{cfg.Ret, nil}, block{cfg.Ret, nil})
	n = number(t, r)
	interesting = interesting[:0]
	for _, way := range [][2]int{{1, 6}, {1, 7}, {2, 5}, {2, 7}, {3, 5}, {3, 6}} {
		interesting = append(interesting, encode(t, n, 0, way[0], 4, way[1], 8))
	}
	if got := prefer(t, n, append(interesting, encode(t, n, 0, 9))...).Range(); got != before+1 {
		t.Errorf("range %d with another path, %d without", got, before)
	}
}

// TestOptimalityIsLocal has a graph for which figure 10 does not find the best weights, though they
// keep the intervals of edges apart, too: it gives each edge the least weight by what comes after
// it, and a greater one of 5-8 would leave a smaller one for 2-5. Theorem 1 is of the model that
// the weights make, which is all that checkTight and checkCoder check.
//
//	0 to 1 or 3, these to 2; 2 to 4, with ten ways on, or to 5; 5 to 7 or 8
func TestOptimalityIsLocal(t *testing.T) {
	ten := []int{9, 10, 11, 12, 13, 14, 15, 16, 17, 18}
	blocks := []block{{cfg.Jcc, []int{1, 3}}, {cfg.Fall, []int{2}}, {cfg.Jcc, []int{4, 5}},
		{cfg.Fall, []int{2}}, {cfg.Table, ten}, {cfg.Jcc, []int{7, 8}}, {cfg.Ret, nil},
		{cfg.Ret, nil}, {cfg.Ret, nil}}
	for range ten {
		blocks = append(blocks, block{cfg.Ret, nil})
	}
	n := number(t, graph(blocks...))
	interesting := []uint64{encode(t, n, 0, 1, 2, 5, 8), encode(t, n, 0, 3, 2, 4, 9),
		encode(t, n, 0, 3, 2, 5, 7)}
	for _, b := range ten {
		interesting = append(interesting, encode(t, n, 0, 1, 2, 4, b))
	}
	p := prefer(t, n, interesting...)
	checkPreferential(t, n, p)
	checkTight(t, n, p)
	if p.Range() != 22 {
		t.Errorf("range %d", p.Range())
	}
	set := func(from, to int, w int64) { p.weights[n.slotBetween(from, to)] = w }
	set(5, 8, 9)
	set(2, 5, 1)
	var ids []int64
	for _, number := range interesting {
		path, err := n.Decode(number)
		if err != nil {
			t.Fatal(err)
		}
		w, err := p.Encode(path)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, w.ID)
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 13 || ids[0] != 0 || ids[12] != 12 {
		t.Errorf("identifiers %d: not perfect", ids)
	}
}

// checkPreferential checks all that is promised of a numbering of interesting paths: identifiers of
// their own, in a range of which the ends are used and that is within its bounds; that walking each
// path gives these; and that the count tells every path of the routine from others.
func checkPreferential(t rapid.TB, n *Numbering, p *Preferential) {
	t.Helper()
	has := map[uint64]int64{}
	for i, path := range p.Paths() {
		has[path.Number] = path.ID
		if i > 0 && p.Paths()[i-1].ID >= path.ID {
			t.Fatalf("two paths have the identifier %d", path.ID)
		}
	}
	count := len(has)
	if count == 0 {
		if p.Range() != 0 {
			t.Fatalf("range %d of no paths", p.Range())
		}
		return
	}
	if p.Paths()[0].ID != 0 || p.Paths()[count-1].ID != p.Range()-1 {
		t.Fatalf("identifiers from %d to %d, range %d", p.Paths()[0].ID, p.Paths()[count-1].ID,
			p.Range())
	}
	if p.Range() < int64(count) || p.Range() > spanned(n, p) {
		t.Fatalf("range %d of %d paths, which span %d", p.Range(), count, spanned(n, p))
	}
	c, err := NewCounter(p)
	if err != nil {
		return // too large for an array
	}
	step := max(1, n.Total/5000)
	for id := uint64(0); id < n.Total; id += step {
		checkWalk(t, n, p, c, id, has)
	}
	for number := range has {
		checkWalk(t, n, p, c, number, has)
	}
}

// checkWalk walks a path as a program would, and counts it.
func checkWalk(t rapid.TB, n *Numbering, p *Preferential, c *Counter, number uint64,
	has map[uint64]int64) {
	path, err := n.Decode(number)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := p.Begin(path.Blocks[0], path.Start)
	for i, to := range path.Blocks[1:] {
		more, ends, _, _ := p.Step(path.Blocks[i], to)
		w, ok = w.Plus(more), ok && !ends
	}
	last := path.Blocks[len(path.Blocks)-1]
	w = w.Plus(p.Finish(last, path.End))
	id, want := has[number]
	if is := c.Count(w) == Interesting; !ok || w.Number != number || is != want ||
		want && w.ID != id {
		t.Fatalf("path %d, interesting %v with %d: %+v, interesting %v, ok %v", number, want, id, w,
			is, ok)
	}
	if encoded, err := p.Encode(path); err != nil || encoded != w {
		t.Fatalf("path %d: %+v walked, %+v encoded, %v", number, w, encoded, err)
	}
}

// spanned is how many paths there are along edges that interesting paths take: what the intervals
// of figure 10 are within, by induction over the blocks. All of these paths being interesting, it
// is the range.
func spanned(n *Numbering, p *Preferential) int64 {
	used := make([]bool, n.slots())
	for _, path := range p.Paths() {
		decoded, err := n.Decode(path.Number)
		if err != nil {
			panic(err)
		}
		for _, slot := range n.slotsOf(decoded) {
			used[slot] = true
		}
	}
	known := map[int]int64{}
	var from func(b int) int64
	from = func(b int) int64 {
		if _, ok := known[b]; !ok {
			v := &n.nodes[b]
			for i := range v.nexits {
				if used[n.exitSlot(b, uint64(i))] {
					known[b]++
				}
			}
			for i := v.edges.from; i < v.edges.to; i++ {
				if used[n.edgeSlot(int(i))] {
					known[b] += from(int(n.edges[i].to))
				}
			}
		}
		return known[b]
	}
	sum := int64(0)
	for i, s := range n.starts {
		if used[i] {
			sum += from(int(s.block))
		}
	}
	return sum
}

// TestPreferential checks the numbering of any paths of graphs of any shape.
func TestPreferential(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, err := Number(drawGraph(t))
		if err != nil {
			t.Fatal(err)
		}
		if n.Total == 0 {
			t.Skip("no path")
		}
		some := rapid.SliceOfN(rapid.Uint64Range(0, n.Total-1), 0, 40).Draw(t, "interesting")
		p, err := n.Prefer(some)
		if err != nil {
			t.Fatal(err)
		}
		checkPreferential(t, n, p)
		checkTight(t, n, p)
		checkCoder(t, n, p)
	})
}

// TestDensePreferential does so of graphs with many paths, most of whose blocks several prefixes
// lead to: most need joins, and some have holes.
func TestDensePreferential(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	holes := 0
	for range 300 {
		n := number(t, denseGraph(rng))
		var some []uint64
		for range 2 + rng.Intn(40) {
			some = append(some, rng.Uint64()%n.Total)
		}
		p := prefer(t, n, some...)
		checkPreferential(t, n, p)
		checkTight(t, n, p)
		checkCoder(t, n, p)
		if p.Range() > int64(len(p.Paths())) {
			holes++
		}
	}
	if holes < 100 {
		t.Errorf("%d graphs with holes", holes)
	}
}

// denseGraph makes a routine of up to 24 blocks most of which go to two or more of the next four.
func denseGraph(rng *rand.Rand) *cfg.Routine {
	count := 8 + rng.Intn(16)
	r := &cfg.Routine{Name: "dense"}
	for b := range count {
		ahead := func() int { return min(b+1+rng.Intn(4), count) }
		switch rng.Intn(12) {
		case 0:
			r.Blocks = append(r.Blocks, cfg.Block{End: cfg.Call, Succ: []int{ahead()}})
		case 1:
			r.Blocks = append(r.Blocks,
				cfg.Block{End: cfg.Jcc, Succ: []int{rng.Intn(b + 1), ahead()}})
		case 2, 3:
			r.Blocks = append(r.Blocks,
				cfg.Block{End: cfg.Table, Succ: []int{ahead(), ahead(), ahead()}})
		default:
			r.Blocks = append(r.Blocks, cfg.Block{End: cfg.Jcc, Succ: []int{ahead(), ahead()}})
		}
	}
	r.Blocks = append(r.Blocks, cfg.Block{End: cfg.Ret})
	return r
}

// TestAllPathsInteresting: then the weights are Ball and Larus's (section 4.4).
func TestAllPathsInteresting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, err := Number(drawGraph(t))
		if err != nil {
			t.Fatal(err)
		}
		if n.Total > 2000 {
			t.Skip("too many to list")
		}
		var all []uint64
		for id := range n.Total {
			all = append(all, id)
		}
		p, err := n.Prefer(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range p.Paths() {
			if path.Number != uint64(path.ID) {
				t.Fatalf("path %d has the identifier %d", path.Number, path.ID)
			}
		}
		if p.Range() != int64(n.Total) {
			t.Fatalf("range %d of %d paths", p.Range(), n.Total)
		}
	})
}

// intervals are what interesting paths have for partial identifiers from some place on, by the
// edges that led there: computed from the definition of section 3.1, path by path, not by Prefer's
// tree.
type interval struct{ least, most int64 }

// A stretch is an edge on some interesting paths, and the way to it.
type stretch struct {
	prefix string
	slot   int
}

// intervalsOf returns the interval of each stretch without its edge's weight, the interval of what
// comes after each prefix, and the slots by the prefix that they go on from, in order.
func intervalsOf(t rapid.TB, n *Numbering, p *Preferential) (edges map[stretch]interval,
	all map[string]interval, out map[string][]int) {
	edges, all, out = map[stretch]interval{}, map[string]interval{}, map[string][]int{}
	join := func(at interval, ok bool, id int64) interval {
		if !ok {
			return interval{id, id}
		}
		return interval{min(at.least, id), max(at.most, id)}
	}
	numbers := p.Paths()
	numbers = slices.Clone(numbers)
	slices.SortFunc(numbers, func(a, b Identified) int { return int(a.Number) - int(b.Number) })
	for _, path := range numbers {
		decoded, err := n.Decode(path.Number)
		if err != nil {
			t.Fatal(err)
		}
		rest, prefix := path.ID, ""
		for _, slot := range n.slotsOf(decoded) {
			before, ok := all[prefix]
			all[prefix] = join(before, ok, rest)
			rest -= p.weights[slot]
			at := stretch{prefix, slot}
			old, ok := edges[at]
			edges[at] = join(old, ok, rest)
			if !ok {
				out[prefix] = append(out[prefix], slot)
			}
			prefix += fmt.Sprint(slot, " ")
		}
	}
	return edges, all, out
}

// checkTight checks the optimality that the paper proves of figure 10, whose model is a maximal
// one: of each edge, given what comes after it and the edges before it, no smaller weight keeps the
// intervals of each prefix apart and identifiers from 0 on (lemma 5 and the join).
func checkTight(t rapid.TB, n *Numbering, p *Preferential) {
	edges, _, out := intervalsOf(t, n, p)
	bound := map[int]bool{} // by slot: a smaller weight would not do
	for prefix, slots := range out {
		free := int64(0)
		for _, slot := range slots {
			in := edges[stretch{prefix, slot}]
			begins := in.least + p.weights[slot]
			if begins < free {
				t.Fatalf("after %q, the interval of %d begins at %d, and those before end at %d",
					prefix, slot, begins, free)
			}
			bound[slot] = bound[slot] || begins == free
			free = in.most + p.weights[slot] + 1
		}
	}
	for prefix, slots := range out {
		for _, slot := range slots {
			if !bound[slot] {
				t.Fatalf("the weight %d of the edge %d after %q may be less", p.weights[slot], slot,
					prefix)
			}
		}
	}
}

// checkCoder encodes each interesting path with the arithmetic coder of figure 14, by the model
// that section 4.3 computes of the intervals: what it returns is the identifier, and what it has
// narrowed the range to is not empty, which is what makes the range 2^H (theorem 1).
func checkCoder(t rapid.TB, n *Numbering, p *Preferential) {
	edges, all, _ := intervalsOf(t, n, p)
	for _, path := range p.Paths() {
		decoded, err := n.Decode(path.Number)
		if err != nil {
			t.Fatal(err)
		}
		low, size, prefix := int64(0), p.Range(), ""
		for _, slot := range n.slotsOf(decoded) {
			in, of := edges[stretch{prefix, slot}], all[prefix]
			if whole := of.most - of.least + 1; size != whole {
				t.Fatalf("path %d: %d identifiers left of %d", path.Number, size, whole)
			}
			low += in.least + p.weights[slot] - of.least
			size = in.most - in.least + 1
			prefix += fmt.Sprint(slot, " ")
		}
		if low != path.ID || size != 1 {
			t.Fatalf("path %d is encoded as %d to below %d, its identifier is %d", path.Number, low,
				low+size, path.ID)
		}
	}
}

// TestManyPaths numbers some paths of 100 diamonds, of which 2^100 paths would lead through if none
// were cut.
func TestManyPaths(t *testing.T) {
	n := number(t, diamonds(100))
	rng := rand.New(rand.NewSource(1))
	for range 20 {
		var some []uint64
		for range 2 + rng.Intn(99) {
			some = append(some, rng.Uint64()%n.Total)
		}
		checkPreferential(t, n, prefer(t, n, some...))
	}
}

// diamonds is a chain of so many if-else.
func diamonds(count int) *cfg.Routine {
	var blocks []block
	for i := range count {
		b := 3 * i
		blocks = append(blocks, block{cfg.Jcc, []int{b + 1, b + 2}}, block{cfg.Jmp, []int{b + 3}},
			block{cfg.Fall, []int{b + 3}})
	}
	return graph(append(blocks, block{cfg.Ret, nil})...)
}

// TestCompactness takes 2 to 100 paths of each routine of real programs at random: nine of ten need
// 1.5 counters a path at most. Paths that ran are more alike, and need fewer: see
// TestPlanOfInterestingPaths of cmd/wpptrace.
func TestCompactness(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	var all []float64
	for _, name := range []string{"gzip", "bash", "sqlite3", "python3"} {
		var list []float64
		for _, r := range recoverFile(t, "/usr/bin/"+name).Routines {
			if r.LeftOut != "" {
				continue
			}
			n := number(t, r)
			if n.Total < 2 {
				continue
			}
			some := []uint64{0, n.Total - 1}
			for range rng.Intn(99) {
				some = append(some, rng.Uint64()%n.Total)
			}
			list = append(list, prefer(t, n, some...).Compactness())
		}
		logCompactness(t, name, list)
		all = append(all, list...)
	}
	if share := logCompactness(t, "all", all); share < 0.9 {
		t.Errorf("%.1f%% of the routines need 1.5 counters a path at most", 100*share)
	}
}

// logCompactness returns how many of some routines have a compactness of 1.5 at most.
func logCompactness(t *testing.T, name string, list []float64) (share float64) {
	slices.Sort(list)
	upTo := func(most float64) float64 {
		i, _ := slices.BinarySearch(list, math.Nextafter(most, 2))
		return float64(i) / float64(len(list))
	}
	at := func(share float64) float64 { return list[int(share*float64(len(list)-1))] }
	t.Logf("%-8s %4d routines: 1 in %.1f%%, at most 1.5 in %.1f%%; median %.2f, 95th of 100 %.2f, "+
		"99th %.2f, most %.1f", name, len(list), 100*upTo(1), 100*upTo(1.5), at(0.5), at(0.95),
		at(0.99), at(1))
	return upTo(1.5)
}

func TestPreferErrors(t *testing.T) {
	n := number(t, figure3())
	if _, err := n.Prefer([]uint64{1, 6}); err == nil || err.Error() !=
		"number interesting paths: decode path 6: the routine has 6 paths" {
		t.Errorf("a path that does not exist: %v", err)
	}
	n.Total = math.MaxInt64 + 1
	if _, err := n.Prefer(nil); err == nil || !strings.Contains(err.Error(),
		"9223372036854775808 possible paths") {
		t.Errorf("too many paths: %v", err)
	}
	if p := prefer(t, number(t, figure3())); p.Range() != 0 || p.Compactness() != 1 ||
		counter(t, p).Count(Weights{}) != Overflow {
		t.Errorf("no interesting path: %+v", p)
	}
	if _, err := NewCounter(&Preferential{size: maxCounters + 1}); err == nil ||
		!strings.Contains(err.Error(), "it would need 1048577 counters, and 1048576 are the most") {
		t.Errorf("too many counters: %v", err)
	}
}

// BenchmarkPrefer takes the same time for each interesting path, however many there are.
func BenchmarkPrefer(b *testing.B) {
	n := number(b, diamonds(16))
	rng := rand.New(rand.NewSource(1))
	for _, count := range []int{100, 1000, 10_000} {
		some := make([]uint64, count)
		for i := range some {
			some[i] = rng.Uint64() % n.Total
		}
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for b.Loop() {
				prefer(b, n, some...)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/path")
		})
	}
}
