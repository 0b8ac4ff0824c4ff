package variables

import (
	"log/slog"
	"testing"

	described "wpptrace/loader/variables"
)

// TestAddTypes: types that say the same are one, also those that lead to themselves; those that
// lead to different ones are two.
func TestAddTypes(t *testing.T) {
	number := func(size int64) described.Type {
		return described.Type{Kind: described.Signed, Name: "n", Size: size, Of: -1}
	}
	pointer := func(of int) described.Type {
		return described.Type{Kind: described.Pointer, Size: 8, Of: of}
	}
	node := func(next, key int) described.Type {
		return described.Type{Kind: described.Struct, Name: "node", Size: 16, Of: -1,
			Members: []described.Member{{Name: "next", Type: next}, {Name: "key", Type: key, Offset: 8}}}
	}
	table := NewTable(slog.New(slog.DiscardHandler))
	index := table.addTypes([]described.Type{
		number(4), node(2, 0), pointer(1), // a list
		number(4), node(5, 3), pointer(4), // the same one
		number(8), node(8, 6), pointer(7), // of other numbers
		{Kind: described.Struct, Size: -1, Of: -1},
	})
	same := [][]int{{0, 3}, {1, 4}, {2, 5}}
	for _, s := range same {
		if index[s[0]] != index[s[1]] {
			t.Errorf("types %v are not one: %v", s, index)
		}
	}
	if n := len(table.found.Types); n != 7 {
		t.Errorf("%d types are left: %v", n, index)
	}
	list := table.found.Types[index[4]]
	if next := table.found.Types[list.Members[0].Type]; next.Of != index[1] {
		t.Errorf("next leads to %d, and not to %d", next.Of, index[1])
	}
	before := len(table.found.Types)
	if again := table.addTypes([]described.Type{number(4)}); again[0] != before {
		t.Errorf("the types of the next image begin at %d, and not behind the others", again[0])
	}
}
