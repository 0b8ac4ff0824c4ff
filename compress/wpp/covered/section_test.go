package covered

import (
	"path/filepath"
	"reflect"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
)

// whole is a coverage with all that there may be.
func whole() *Coverage {
	m := image(1, Run, NotRun, Unknown)
	m.Routines = append(m.Routines, Routine{Name: "g<int>", Symbol: "_Z1gIiE", Addr: 0x400})
	m.Blocks[0].Jump = &Jump{Place: Line{0, 5}, Outcomes: [2]State{Run, Unknown}}
	m.Blocks[1].Jump = &Jump{}
	m.Blocks[2].Routine, m.Blocks[2].Lines = -1, nil
	return &Coverage{Images: []Image{m, image(2)}}
}

func TestSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wpp")
	want := whole()
	s := &wpp.Snapshot{Sections: []*wpp.Section{want.Section()}}
	if err := store.WriteFile(path, s); err != nil {
		t.Fatal(err)
	}
	read, err := store.ReadFile(path, Kind)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Of(read)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read: %+v", got)
	}
	if _, err := store.ReadFile(path); err == nil {
		t.Error("a reader that does not know the section does not refuse the file")
	}
}

// Whatever bytes a section has, it is refused or has no index out of range: it can be printed, and
// merged.
func FuzzOf(f *testing.F) {
	data, err := whole().Section().Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Of(&wpp.Snapshot{Sections: []*wpp.Section{wpp.NewSection(Kind, data)}})
		if err != nil {
			return
		}
		c.Sources()
		_ = whole().Merge(c)
		_ = c.Merge(whole())
	})
}
