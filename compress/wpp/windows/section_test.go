package windows

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

func TestSection(t *testing.T) {
	want := Lists{{1, 2, 3, 7}, nil, {1 << 63}}
	s := &wpp.Snapshot{Threads: make([]wpp.Thread, 3), Sections: []*wpp.Section{want.Section()}}
	got, err := Of(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	s.Threads = s.Threads[:2]
	if _, err := Of(s); err == nil {
		t.Error("of other threads")
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// FuzzOf: whatever a section says, lists ascend.
func FuzzOf(f *testing.F) {
	for _, after := range [][]uint64{{1, 2}, {0}, {1 << 63, 1 << 63}, {}} {
		data, err := proto.Marshal(&WindowsSection{
			Thread: []*WindowsSection_Thread{{After: after}}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &wpp.Snapshot{Threads: make([]wpp.Thread, 1),
			Sections: []*wpp.Section{wpp.NewSection(Kind, data)}}
		lists, err := Of(s)
		if err != nil {
			return
		}
		last := uint64(0)
		for _, n := range lists[0] {
			if n <= last {
				t.Fatalf("%d behind %d", n, last)
			}
			last = n
		}
	})
}
