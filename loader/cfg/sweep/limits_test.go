package sweep

import (
	"strings"
	"testing"

	"wpptrace/loader/image"
)

// A file with holes claims any amount of code at no cost.
func TestTooMuchCode(t *testing.T) {
	defer func(code uint64, insns int) { maxCode, maxInsns = code, insns }(maxCode, maxInsns)
	const lo, insns = 0x1000, 1000
	maxCode, maxInsns = 2*insns+10, insns
	for bytes, want := range map[uint64]string{
		2 * insns:     "",
		2*insns + 2:   "more than 1000 instructions take too much memory",
		2*insns + 100: "0 MB of code: more than 0 MB take too much memory",
	} {
		im := &image.Image{Name: "it",
			Sections: []image.Section{{Name: ".text", Addr: lo, Data: make([]byte, bytes),
				Exec: true}},
			Ranges: []image.Range{image.NewRange(lo, lo+bytes,
				image.Row{PC: lo, CFA: image.CFA{Reg: 7, Off: 8}})}}
		if _, err := Decode(im); (err == nil) != (want == "") ||
			err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%d bytes: %v, want %q", bytes, err, want)
		}
	}
}
