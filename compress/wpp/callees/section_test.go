package callees

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"wpptrace/compress/wpp"
)

func ExampleOf() {
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1)}
	s.Sections = append(s.Sections, Names{{0, 0x1030}: "free"}.Section())
	n, err := Of(s)
	fmt.Println(n[Address{0, 0x1030}], err)
	// Output: free <nil>
}

func TestSection(t *testing.T) {
	want := Names{{1, 0x4018}: "free", {0, 0x1030}: "malloc", {1, 0x1040}: "free"}
	s := &wpp.Snapshot{Images: make([]wpp.Image, 2), Sections: []*wpp.Section{want.Section()}}
	got, err := Of(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	s.Images = s.Images[:1]
	if _, err := Of(s); err == nil {
		t.Error("of other images")
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// FuzzOf: whatever a section says, its addresses are of images that there are.
func FuzzOf(f *testing.F) {
	for _, m := range []*CalleesSection{
		{Image: []uint32{0}, Address: []uint64{0x1030}, Name: []string{"free"}},
		{Image: []uint32{1 << 31}, Address: []uint64{0}, Name: []string{""}},
		{Image: []uint32{0}, Name: []string{"free"}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &wpp.Snapshot{Images: make([]wpp.Image, 1),
			Sections: []*wpp.Section{wpp.NewSection(Kind, data)}}
		n, err := Of(s)
		if err != nil {
			return
		}
		for at := range n {
			if at.Image != 0 {
				t.Fatalf("%+v", n)
			}
		}
	})
}
