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

var some = []variables.Variable{
	{Name: "count", Routine: variables.Global, Size: 4, Type: variables.Signed,
		Places: []variables.Place{{0, ^uint64(0), variables.Memory, variables.LoadBase, 0x4010}}},
	{Name: "x", Image: 1, Routine: 1, Size: 8, Type: variables.Float, Places: []variables.Place{
		{0x1000, 0x1010, variables.Vector, 0, 3}, {0x1010, 0x1020, variables.Memory, 5, -24},
		{0x1020, 0x1024, variables.Register, 4, 0}, {0x1024, 0x1030, variables.NotKnown, 0, 0}}},
	{Name: "none", Size: 1},
}

func snapshot(data *wpp.Section) *wpp.Snapshot {
	return &wpp.Snapshot{Images: make([]wpp.Image, 2), Routines: make([]wpp.Routine, 2),
		Sections: []*wpp.Section{data}}
}

func TestSection(t *testing.T) {
	got, err := variables.Of(snapshot(variables.Section(some)))
	if diff := cmp.Diff(some, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := variables.Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// TestWrong: what refers to nothing, or says what there is not, is refused.
func TestWrong(t *testing.T) {
	for name, change := range map[string]func(*variables.Variable){
		"routine":  func(v *variables.Variable) { v.Routine = 2 },
		"image":    func(v *variables.Variable) { v.Image = 2 },
		"size":     func(v *variables.Variable) { v.Size = 9 },
		"no size":  func(v *variables.Variable) { v.Size = 0 },
		"type":     func(v *variables.Variable) { v.Type = 4 },
		"float":    func(v *variables.Variable) { v.Size = 2 },
		"where":    func(v *variables.Variable) { v.Places[0].Where = 5 },
		"vector":   func(v *variables.Variable) { v.Places[0].Offset = 16 },
		"base":     func(v *variables.Variable) { v.Places[1].Base = 18 },
		"register": func(v *variables.Variable) { v.Places[2].Base = 17 },
	} {
		v := some[1]
		v.Places = slices.Clone(v.Places)
		change(&v)
		section := variables.Section([]variables.Variable{v})
		if _, err := variables.Of(snapshot(section)); err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
}

// FuzzOf: whatever a section says, it is refused with one error, or what it says is written as it
// was read.
func FuzzOf(f *testing.F) {
	data, err := variables.Section(some).Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)-3])
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := variables.Of(snapshot(wpp.NewSection(variables.Kind, data)))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		again, err := variables.Of(snapshot(variables.Section(list)))
		if diff := cmp.Diff(list, again); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func ExampleOf() {
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1)} // as store.ReadFile returns it
	s.Sections = append(s.Sections, variables.Section(some[:1]))
	list, err := variables.Of(s)
	fmt.Println(len(list), list[0].Name, err)
	// Output: 1 count <nil>
}
