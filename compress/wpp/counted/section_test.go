package counted

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

func TestSection(t *testing.T) {
	want := &Counts{time.Second, []Site{
		{1, 0x1000, true, []Slot{{1, 20, time.Millisecond, time.Microsecond}, {3, 0, 5, 0}}},
		{0, 0x2000, false, nil},
	}}
	s := &wpp.Snapshot{Routines: make([]wpp.Routine, 2),
		Sections: []*wpp.Section{want.Section()}}
	got, err := Of(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	s.Routines = s.Routines[:1]
	if _, err := Of(s); err == nil {
		t.Error("of other routines")
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// FuzzOf: whatever a section says, its counts are of routines that there are, and no time is
// negative.
func FuzzOf(f *testing.F) {
	for _, m := range []*CountedSection{
		{OwnNs: 5, Site: []*CountedSection_Site{{Number: []uint32{1}, Hits: []uint64{2},
			SlotUsedNs: []uint64{3}, SlotCostNs: []uint64{4}}}},
		{OwnNs: math.MaxUint64},
		{Site: []*CountedSection_Site{{Routine: 7}, {Number: []uint32{1}}}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &wpp.Snapshot{Routines: make([]wpp.Routine, 1),
			Sections: []*wpp.Section{wpp.NewSection(Kind, data)}}
		c, err := Of(s)
		if err != nil {
			return
		}
		for _, site := range c.Sites {
			if site.Routine != 0 || c.Own < 0 {
				t.Fatalf("%+v", c)
			}
			for _, slot := range site.Slots {
				if slot.Used < 0 || slot.Cost < 0 {
					t.Fatalf("%+v", slot)
				}
			}
		}
	})
}
