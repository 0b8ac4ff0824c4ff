package image

import (
	"bytes"
	"os"
	"testing"
)

// TestFunctions: each routine that has a symbol is found by each end of its code.
func TestFunctions(t *testing.T) {
	const path = "/bin/bash"
	im, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ReadFunctions(bytes.NewReader(data), int64(len(data)), path)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, s := range im.Symbols() {
		first, ok := im.FileOffset(s.Addr)
		if !ok || s.Size == 0 {
			continue
		}
		named++
		for _, offset := range []uint64{first, first + s.Size - 1} {
			if f.At(offset) == "" {
				t.Errorf("%s: no name at %#x", s.Name, offset)
			}
		}
		if s.Name == "xmalloc" && f.At(first+1) != s.Name {
			t.Errorf("%s is called %s", s.Name, f.At(first+1))
		}
	}
	if named < 1000 {
		t.Errorf("%d symbols", named)
	}
	if f.At(1<<60) != "" || f.At(0) != "" {
		t.Error("what is no code has a name")
	}
}

// FuzzFunctions: a hostile file is refused, or named.
func FuzzFunctions(f *testing.F) {
	f.Add(smallELF())
	f.Fuzz(func(t *testing.T, data []byte) {
		functions, err := ReadFunctions(bytes.NewReader(data), int64(len(data)), "fuzz")
		if err != nil {
			return
		}
		const places = 256
		for offset := 0; offset < len(data); offset += 1 + len(data)/places {
			functions.At(uint64(offset))
		}
	})
}
