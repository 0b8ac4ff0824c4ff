package names

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// A routine that is inlined wherever it is called has no paths: the error says where its code runs.
// One that is also inlined is said to be.
func TestInlinedNames(t *testing.T) {
	n := Of(querytest.InlinedCompressor())
	for name, want := range map[string][]string{
		"next_block":                  {"main"},
		"std::vector<...>::push_back": {"main"},
		"std::vector<unsigned char, std::allocator<unsigned char> >::push_back": {"main"},
		"odd?[2J":       {n.routines[1]},
		"longest_match": nil,
		"":              nil,
	} {
		if got := n.InlinedInto(name); !slices.Equal(got, want) {
			t.Errorf("%s is in %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"next_block()": "next_block has no code of its own in the snapshot: it is inlined into " +
			"main, where calls of it are not counted",
		"'next_block'#0": "next_block has no code of its own in the snapshot: it is inlined into " +
			"main, where calls of it are not counted",
		"nextblock": "no routine nextblock, but next_block",
	} {
		if _, err := n.Select(name); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// TestNearNamesOfInlinedRoutines: of what is inlined as well, a name as a declaration has it leads
// to the code that it has, and one of which only a clone has code to that.
func TestNearNamesOfInlinedRoutines(t *testing.T) {
	s := querytest.InlinedCompressor()
	s.Routines = append(s.Routines, wpp.Routine{Name: "tf<3>", Entry: 0x90000, Paths: 1},
		wpp.Routine{Name: "next_block.part.0", Entry: 0x91000, Paths: 1})
	s.Calls[3].Name = "tf<3>"
	n := Of(s)
	for name, want := range map[string]string{
		"'int tf<3>'()": "no routine int tf<3>, but tf<3>",
		"'int tf<3>()'": "no routine int tf<3>(), but tf<3>",
		"'int tf<3>'#0": "no routine int tf<3>, but tf<3>",
		"next_block()": "next_block has no code of its own in the snapshot: it is inlined into " +
			"main, where calls of it are not counted, but there is next_block.part.0",
	} {
		if _, err := n.Select(name); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}
