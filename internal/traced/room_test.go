package traced

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"wpptrace/internal/remedy"
	"wpptrace/loader/image"
)

// A program for which control groups leave too little memory is refused before it is read, with
// what to do; one that fits is not.
func TestRoom(t *testing.T) {
	defer func(n int) { large = n }(large)
	f, err := os.Open("/bin/bash")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	for _, c := range []struct {
		name  string
		large int
		left  uint64
		fits  bool
	}{
		{"all of it", 1 << 30, 64 << 20, true},
		{"all of it, in too little", 1 << 30, 16 << 20, false},
		{"a part", 0, 128 << 20, true},
		{"a part, in too little", 0, 64 << 20, false},
		{"no limit", 0, math.MaxUint64, true},
	} {
		large = c.large
		end, err := room{c.left, "bash"}.begin(f)
		end()
		var marked *remedy.Error
		if c.fits != (err == nil) || err != nil && (!errors.As(err, &marked) ||
			marked.Kind != remedy.MoreMemory || !strings.Contains(err.Error(), " MB of memory")) {
			t.Errorf("%s: error %v", c.name, err)
		}
	}
}

// The estimate of what a large program takes is right, within 10 %, for those that were measured:
// by what was alive at most.
func TestPartNeeds(t *testing.T) {
	for name, c := range map[string]struct {
		sizes image.Sizes
		want  uint64
	}{
		"big":    {image.Sizes{Mapped: 230_125_000, Code: 169_192_000, Frames: 490_240}, 415 << 20},
		"libxul": {image.Sizes{Mapped: 183_600_000, Code: 123_284_000, Frames: 273_890}, 320 << 20},
		"node":   {image.Sizes{Mapped: 94_500_000, Code: 36_000_000, Frames: 75_920}, 155 << 20},
	} {
		if got := partNeeds(c.sizes); got < c.want*9/10 || got > c.want*11/10 {
			t.Errorf("%s: %d MB, want %d", name, got>>20, c.want>>20)
		}
	}
}
