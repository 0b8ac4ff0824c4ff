package values

import (
	"testing"

	"wpptrace/compress/wpp/variables"
)

// TestStructureOfItself: of a damaged table whose structures are within themselves, the search for
// numbers and fields ends.
func TestStructureOfItself(t *testing.T) {
	within := variables.Type{Kind: variables.Struct, Members: make([]variables.Member, 100)}
	table := &variables.Table{Types: []variables.Type{within},
		Variables: []variables.Variable{{Name: "x"}}}
	x := Whole(table, &table.Variables[0])
	if list, f := x.numbers(mostParts), x.field("y"); len(list) > 0 || f != nil {
		t.Errorf("%v, %v", list, f)
	}
}
