package paths

import (
	"cmp"
	"slices"
)

// prefixes are the beginnings of interesting paths, as a tree: a prefix comes after that which it
// extends by an edge, and the first is empty. Paths with the same beginning share it, so that two
// of them part at their critical node (section 3.1), once.
type prefixes struct {
	n      *Numbering
	list   []prefix
	last   []int32 // by slot: a prefix whose last edge it is; others follow as siblings; 0: none
	ends   []int32 // those that are interesting paths, in the order of their numbers
	blocks []int32 // that they go through, each once
}

// A prefix is the beginning of an interesting path.
type prefix struct {
	extends int32
	slot    int32 // of its last edge
	sibling int32 // another one with the same last edge; 0: none

	// the partial identifiers, from here on, of the interesting paths that begin so: the interval
	// of section 3.1. Nothing is in it yet where most is below least.
	least, most int64
}

// cis is the size of the intervals so far, side by side from 0 on: the first identifier that is
// free.
func (p *prefix) cis() int64 { return p.most + 1 }

// prefixes makes the tree for interesting paths in the order of their numbers, in which those with
// the same beginning follow one another.
func (p *Preferential) prefixes(sorted []uint64) (*prefixes, error) {
	t := &prefixes{n: p.n, last: make([]int32, len(p.weights)),
		list: []prefix{{most: -1}}}
	seen := make([]bool, len(p.n.nodes))
	var way []int32 // the prefixes of the path before
	for _, number := range sorted {
		path, err := p.n.Decode(number)
		if err != nil {
			return nil, err
		}
		slots := p.n.slotsOf(path)
		shared := 0
		for shared < len(way) && int(t.list[way[shared]].slot) == slots[shared] {
			shared++
		}
		way = way[:shared]
		for i := shared; i < len(slots); i++ {
			from := int32(0)
			if i > 0 {
				from = way[i-1]
			}
			way = append(way, t.add(from, slots[i]))
		}
		end := way[len(way)-1]
		t.list[end].most = 0 // the one identifier of what is complete
		t.ends = append(t.ends, end)
		for _, b := range path.Blocks {
			if !seen[b] {
				seen[b] = true
				t.blocks = append(t.blocks, int32(b))
			}
		}
	}
	return t, nil
}

func (t *prefixes) add(extends int32, slot int) int32 {
	i := int32(len(t.list))
	t.list = append(t.list,
		prefix{extends: extends, slot: int32(slot), sibling: t.last[slot], most: -1})
	t.last[slot] = i
	return i
}

// weigh gives weights to the edges that interesting paths take: figure 10. Each block comes after
// those to which it leads, and its edges in the order in which Ball and Larus's numbers count, so
// that the weights are theirs where all paths are interesting.
func (t *prefixes) weigh(weights []int64) {
	n := t.n
	slices.SortFunc(t.blocks, func(a, b int32) int {
		return cmp.Compare(n.nodes[a].edges.to, n.nodes[b].edges.to)
	})
	for _, b := range t.blocks {
		v := &n.nodes[b]
		for i := range v.nexits {
			t.weighEdge(n.exitSlot(int(b), uint64(i)), weights)
		}
		for i := v.edges.from; i < v.edges.to; i++ {
			t.weighEdge(n.edgeSlot(int(i)), weights)
		}
	}
	for i := range n.starts {
		t.weighEdge(i, weights)
	}
}

// weighEdge gives an edge the least weight by which, for each prefix that comes to it, the interval
// beyond begins behind those of the edges before: their join (lines 2 to 21).
func (t *prefixes) weighEdge(slot int, weights []int64) {
	first := t.last[slot]
	if first == 0 {
		return
	}
	of := func(i int32) (beyond, before *prefix) {
		beyond = &t.list[i]
		return beyond, &t.list[beyond.extends]
	}
	beyond, before := of(first)
	w := before.cis() - beyond.least
	for i := beyond.sibling; i != 0; i = beyond.sibling {
		beyond, before = of(i)
		w = max(w, before.cis()-beyond.least)
	}
	weights[slot] = w
	for i := first; i != 0; i = beyond.sibling {
		beyond, before = of(i)
		if before.most < before.least {
			before.least = beyond.least + w
		}
		before.most = beyond.most + w
	}
}

// identify returns the identifiers of the interesting paths, in the order of their numbers.
func (t *prefixes) identify(weights []int64) []int64 {
	sums := make([]int64, len(t.list))
	for i := 1; i < len(t.list); i++ {
		q := &t.list[i]
		sums[i] = sums[q.extends] + weights[q.slot]
	}
	ids := make([]int64, len(t.ends))
	for i, end := range t.ends {
		ids[i] = sums[end]
	}
	return ids
}
