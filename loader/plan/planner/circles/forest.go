package circles

// A Forest is a set of edges without a circle, whichever way they are followed: a disjoint-set
// structure whose last joins can be undone. An empty one is only there to be copied to.
type Forest struct {
	parent, size []int32
	joined       []int32 // the roots that were joined to others since the last Keep
}

// NewForest returns a forest of so many nodes, and no edge.
func NewForest(nodes int) Forest {
	f := Forest{parent: make([]int32, nodes), size: make([]int32, nodes)}
	for i := range nodes {
		f.parent[i], f.size[i] = int32(i), 1
	}
	return f
}

// CopyFrom makes it a copy of another one, of which no join can be undone. It allocates only where
// the other has more nodes than any that it was a copy of.
func (f *Forest) CopyFrom(other *Forest) {
	f.parent = append(f.parent[:0], other.parent...)
	f.size = append(f.size[:0], other.size...)
	f.joined = f.joined[:0]
}

func (f *Forest) root(n int32) int32 {
	for f.parent[n] != n {
		n = f.parent[n]
	}
	return n
}

// Join adds an edge between two nodes. It reports false if it would close a circle: then it does
// not add it. Cost: the logarithm of the number of nodes.
func (f *Forest) Join(m, n int32) bool {
	a, b := f.root(m), f.root(n)
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

// Keep makes the joins since the last Keep or Undo ones that cannot be undone.
func (f *Forest) Keep() { f.joined = f.joined[:0] }

// Undo takes back the joins since the last Keep or Undo.
func (f *Forest) Undo() {
	for i := len(f.joined) - 1; i >= 0; i-- {
		a := f.joined[i]
		f.size[f.parent[a]] -= f.size[a]
		f.parent[a] = a
	}
	f.joined = f.joined[:0]
}
