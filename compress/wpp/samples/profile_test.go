package samples

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

// snapshot has two images with a routine each.
func snapshot(sections ...*wpp.Section) *wpp.Snapshot {
	return &wpp.Snapshot{
		Images:   []wpp.Image{{Name: "program"}, {Name: "library"}},
		Routines: []wpp.Routine{{Name: "f"}, {Name: "g", Image: 1}},
		Sections: sections,
	}
}

func profile() *Profile {
	return &Profile{
		Period:  time.Millisecond,
		CPUTime: time.Second,
		Wall:    time.Minute,
		Kernel:  1,
		Unknown: 2,
		Lost:    3,
		Files: []File{
			{Path: "library", Image: 1, Samples: 20, Routines: []InRoutine{{1, 20}}},
			{Path: "program", Image: 0, Samples: 10, Routines: []InRoutine{{0, 7}}},
			{Path: "other", Image: NoImage, Samples: 5, Names: map[string]uint64{"h": 4}},
		},
		JIT: []Memory{
			{Mapping: "[anon:v8]", Samples: 9, Names: map[string]uint64{"f": 4, "g": 5}},
			{Samples: 1},
		},
	}
}

func TestSection(t *testing.T) {
	want := profile()
	got, err := Of(snapshot(want.Section()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := got.Total(); n != 51 {
		t.Errorf("%d samples", n)
	}
}

func TestNoSection(t *testing.T) {
	if p, err := Of(snapshot()); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestDamaged: what does not fit the snapshot, or itself, is refused.
func TestDamaged(t *testing.T) {
	const many = 1 << 63
	file := func(image uint32, all uint64, routine uint32, in ...uint64) *SamplesSection {
		return &SamplesSection{File: []*SamplesSection_File{
			{Image: image, Samples: all, Routine: []uint32{routine}, InRoutine: in}}}
	}
	for name, m := range map[string]*SamplesSection{
		"image":          {File: []*SamplesSection_File{{Image: 3}}},
		"routine":        file(1, 0, 2, 0),
		"another's":      file(1, 0, 1, 0),
		"no image":       file(0, 0, 0, 0),
		"no count":       file(1, 0, 0),
		"more in a part": file(1, 1, 0, 2),
		"name":           {Memory: []*SamplesSection_Memory{{Name: [][]byte{[]byte("f")}}}},
		"more named":     {Memory: []*SamplesSection_Memory{{Name: [][]byte{nil}, InName: []uint64{1}}}},
		"sum":            {Kernel: many, Unknown: many},
		"too many":       {Kernel: many},
		"period":         {PeriodNs: many},
		"time":           {CpuNs: many},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Of(snapshot(wpp.NewSection(Kind, data))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Of(snapshot(wpp.NewSection(Kind, []byte{0xff}))); err == nil {
		t.Error("garbage: no error")
	}
}

func FuzzOf(f *testing.F) {
	data, err := profile().Section().Data()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Of(snapshot(wpp.NewSection(Kind, data)))
		if err != nil {
			return
		}
		again, err := Of(snapshot(p.Section()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Error(diff)
		}
	})
}
