package image

import (
	"os"
	"testing"
)

// The sizes that headers give are those of what is read then.
func TestReadSizes(t *testing.T) {
	for _, path := range []string{"/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6"} {
		f, size, err := OpenRegular(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := ReadSizes(f, size, path)
		if err != nil {
			t.Fatal(err)
		}
		im, want := mustOpen(t, path), Sizes{}
		for _, s := range im.Sections {
			want.Mapped += uint64(len(s.Data))
			if s.Exec {
				want.Code += uint64(len(s.Data))
			}
		}
		want.Frames = uint64(len(im.Ranges))
		if got.Mapped != want.Mapped || got.Code != want.Code ||
			got.Frames < want.Frames*9/10 || got.Frames > want.Frames*3/2 {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	f, err := os.Open("sizes_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ReadSizes(f, 1<<10, "it"); err == nil {
		t.Error("no error of a file that is no program")
	}
}
