package variables_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/variables"
)

func some() *variables.Table {
	return &variables.Table{
		Types: []variables.Type{
			{Kind: variables.Signed, Name: "int", Size: 4, Of: variables.NoType,
				Names: []variables.Enumerator{{Name: "few", Value: -3}}},
			{Kind: variables.Struct, Size: 16, Of: variables.NoType, Members: []variables.Member{
				{Name: "next", Type: 2}, {Name: "flag", Type: 0, Offset: 8, FirstBit: 3, Bits: 2},
				{Type: 3, Offset: 8, IsBase: true}}},
			{Kind: variables.Pointer, Size: 8, Of: 1},
			{Kind: variables.Array, Of: 0, Count: -1},
		},
		Variables: []variables.Variable{
			{Name: "count", Routine: variables.Global, Places: []variables.Place{
				{0, ^uint64(0), []byte{3, 0x10, 0x40, 0, 0, 0, 0, 0, 0}}}},
			{Name: "x", Line: 7, Inlined: "f", Image: 1, Routine: 1, Type: 2,
				Places: []variables.Place{
					{0x1000, 0x1010, []byte{0x50}},
					{0x1010, 0x1020, []byte{0x91, 0x10}},
					{0x1020, 0x1030, nil}, {0x1030, 0x1040, []byte{0x50}}}},
			{Name: "none"},
		},
	}
}

func snapshot(data *wpp.Section) *wpp.Snapshot {
	return &wpp.Snapshot{Images: make([]wpp.Image, 2), Routines: make([]wpp.Routine, 2),
		Sections: []*wpp.Section{data}}
}

func TestSection(t *testing.T) {
	got, err := variables.Of(snapshot(variables.Section(some())))
	if diff := cmp.Diff(some(), got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := variables.Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// TestWrong: what refers to nothing, or says what there is not, is refused.
func TestWrong(t *testing.T) {
	for name, change := range map[string]func(*variables.Table){
		"routine":   func(t *variables.Table) { t.Variables[1].Routine = 2 },
		"image":     func(t *variables.Table) { t.Variables[1].Image = 2 },
		"type":      func(t *variables.Table) { t.Variables[1].Type = 4 },
		"size":      func(t *variables.Table) { t.Types[0].Size = 9 },
		"no size":   func(t *variables.Table) { t.Types[0].Size = 0 },
		"large":     func(t *variables.Table) { t.Types[1].Size = 1 << 41 },
		"kind":      func(t *variables.Table) { t.Types[0].Kind = 10 },
		"float":     func(t *variables.Table) { t.Types[0].Kind, t.Types[0].Size = variables.Float, 2 },
		"pointer":   func(t *variables.Table) { t.Types[2].Size = 4 },
		"of":        func(t *variables.Table) { t.Types[2].Of = 4 },
		"member":    func(t *variables.Table) { t.Types[1].Members[0].Type = 4 },
		"offset":    func(t *variables.Table) { t.Types[1].Members[0].Offset = 1 << 41 },
		"first bit": func(t *variables.Table) { t.Types[1].Members[1].FirstBit = 8 },
		"bits":      func(t *variables.Table) { t.Types[1].Members[1].Bits = 65 },
	} {
		table := some()
		change(table)
		if _, err := variables.Of(snapshot(variables.Section(table))); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

// FuzzOf: whatever a section says, it is refused with one error, or what it says is written as it
// was read.
func FuzzOf(f *testing.F) {
	data, err := variables.Section(some()).Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := variables.Of(snapshot(wpp.NewSection(variables.Kind, data)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		for i := range table.Variables { // an expression of no bytes is one that is not known
			for k := range table.Variables[i].Places {
				p := &table.Variables[i].Places[k]
				p.Expression = slices.Clip(append([]byte(nil), p.Expression...))
			}
		}
		again, err := variables.Of(snapshot(variables.Section(table)))
		if diff := cmp.Diff(table, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func ExampleOf() {
	s := &wpp.Snapshot{Images: make([]wpp.Image, 2), Routines: make([]wpp.Routine, 2)}
	s.Sections = append(s.Sections, variables.Section(some())) // as store.ReadFile returns it
	table, err := variables.Of(s)
	fmt.Println(len(table.Variables), table.Variables[0].Name, err)
	// Output: 3 count <nil>
}
