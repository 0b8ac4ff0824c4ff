package faults

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

func ExampleOf() {
	s := &wpp.Snapshot{Threads: make([]wpp.Thread, 1), Routines: make([]wpp.Routine, 3)}
	s.Sections = append(s.Sections, List{{Thread: 0, Routine: 2, Addr: 0x1170}}.Section())
	list, err := Of(s)
	fmt.Printf("%+v %v\n", list, err)
	// Output: [{Thread:0 Routine:2 Addr:4464}] <nil>
}

func TestSection(t *testing.T) {
	want := List{{0, 1, 0x1000}, {2, 0, 0x2000}}
	made := func() *wpp.Snapshot {
		return &wpp.Snapshot{Threads: make([]wpp.Thread, 3), Routines: make([]wpp.Routine, 2),
			Sections: []*wpp.Section{want.Section()}}
	}
	got, err := Of(made())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
	for name, damage := range map[string]func(s *wpp.Snapshot){
		"thread":  func(s *wpp.Snapshot) { s.Threads = s.Threads[:2] },
		"routine": func(s *wpp.Snapshot) { s.Routines = s.Routines[:1] },
		"order":   func(s *wpp.Snapshot) { s.Sections[0] = List{want[1], want[0]}.Section() },
		"lists": func(s *wpp.Snapshot) {
			data, err := proto.Marshal(&FaultsSection{Thread: []uint32{0}})
			if err != nil {
				t.Fatal(err)
			}
			s.Sections[0] = wpp.NewSection(Kind, data)
		},
	} {
		s := made()
		damage(s)
		if _, err := Of(s); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// FuzzOf: whatever a section says, it is of threads and routines that there are.
func FuzzOf(f *testing.F) {
	data, err := List{{0, 1, 0x1000}}.Section().Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &wpp.Snapshot{Threads: make([]wpp.Thread, 2), Routines: make([]wpp.Routine, 2),
			Sections: []*wpp.Section{wpp.NewSection(Kind, data)}}
		list, err := Of(s)
		if err != nil {
			return
		}
		for _, x := range list {
			if x.Thread > 1 || x.Routine > 1 {
				t.Fatalf("%+v", list)
			}
		}
	})
}
