package shape_test

import (
	"fmt"

	"wpptrace/compress/wpp"
	"wpptrace/internal/shape"
)

// Of routines whose file is gone, nothing is known.
func ExampleOf() {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/gone", BuildID: []byte{1}}},
		Routines: []wpp.Routine{{Name: "f", Blocks: []wpp.Block{{Addr: 1, Lengths: []byte{1}}}}}}
	shapes, err := shape.Of(s, nil)
	fmt.Println(len(shapes.Of), shapes.LeftOut, err)
	// Output: 0 map[open image: open /gone: no such file or directory:1] <nil>
}
