package tiers

import (
	"encoding/binary"
	"slices"

	"wpptrace/query/slice"
)

// An end of an edge is a statement of a path.
type end struct{ symbol, number uint32 }

// An edge leads from one statement to another, that it depends on.
type edge struct {
	from, to end
	kind     slice.Kinds
}

// labels are those of an edge that are not within an execution of a path: the timestamps of its
// ends, one after the other.
type labels struct{ from, back []uint64 }

// measureEdges says how large the labels of dependences are.
func (m *maker) measureEdges(t *Tiers) error {
	g := m.graph.Graph()
	of := map[edge]*labels{}
	var order []edge
	for i := range g.Len() {
		a := m.at[i]
		for on, kind := range g.DependsOn(i) {
			t.Labels++
			b := m.at[on]
			if a.stamp == b.stamp { // it follows from the path
				t.Local++
				continue
			}
			x := edge{end{a.symbol, a.number}, end{b.symbol, b.number}, kind}
			l := of[x]
			if l == nil {
				l = &labels{}
				of[x] = l
				order = append(order, x)
			}
			l.from = append(l.from, uint64(a.stamp))
			l.back = append(l.back, uint64(a.stamp-b.stamp))
		}
	}
	t.Edges.Before = labelSize * t.Labels
	shared := map[string]bool{}
	var all [][]uint64
	for _, x := range order {
		l := of[x]
		if key := l.key(x); shared[key] {
			t.Shared += uint64(len(l.from))
			continue
		} else {
			shared[key] = true
		}
		t.Edges.First += labelSize * uint64(len(l.from))
		all = append(all, l.from, l.back)
	}
	return t.Edges.second(all)
}

// key is the same for edges between the same two paths with the same labels.
func (l *labels) key(x edge) string {
	var b []byte
	for _, n := range slices.Concat([]uint64{uint64(x.from.symbol), uint64(x.to.symbol)}, l.from,
		l.back) {
		b = binary.AppendUvarint(b, n)
	}
	return string(b)
}
