package planner

// A forest is a set of edges without a circle, whichever way they are followed: a disjoint-set
// structure whose last joins can be undone.
type forest struct {
	parent, size []int32
	joined       []int32 // the roots that were joined to others since the last keep
}

func newForest(nodes int) forest {
	f := forest{parent: make([]int32, nodes), size: make([]int32, nodes)}
	for i := range nodes {
		f.parent[i], f.size[i] = int32(i), 1
	}
	return f
}

// copyFrom makes it a copy of another one, of which no join can be undone.
func (f *forest) copyFrom(other *forest) {
	f.parent = append(f.parent[:0], other.parent...)
	f.size = append(f.size[:0], other.size...)
	f.joined = f.joined[:0]
}

func (f *forest) root(n int32) int32 {
	for f.parent[n] != n {
		n = f.parent[n]
	}
	return n
}

// join adds an edge. It reports false if it would close a circle.
func (f *forest) join(e edge) bool {
	a, b := f.root(e.from), f.root(e.to)
	if a == b {
		return false
	}
	if f.size[a] > f.size[b] {
		a, b = b, a
	}
	f.parent[a] = b
	f.size[b] += f.size[a]
	f.joined = append(f.joined, a)
	return true
}

func (f *forest) keep() { f.joined = f.joined[:0] }

func (f *forest) undo() {
	for i := len(f.joined) - 1; i >= 0; i-- {
		a := f.joined[i]
		f.size[f.parent[a]] -= f.size[a]
		f.parent[a] = a
	}
	f.joined = f.joined[:0]
}
