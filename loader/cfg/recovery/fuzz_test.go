package recovery_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// FuzzRecover changes bytes of a program: each five bytes of edits are an offset, a little above
// the file's size at most, and a new value.
func FuzzRecover(f *testing.F) {
	program, err := os.ReadFile(compileFile(f, "switches/all.c", "-O2",
		"-fno-asynchronous-unwind-tables", "-funwind-tables", "-Wl,--build-id=none"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte{0x40, 0x11, 0, 0, 0xe9, 0x80, 0x11, 0, 0, 0x0f})
	f.Add([]byte{0x48, 0x20, 0, 0, 0xff, 0x60, 0x20, 0, 0, 0x00, 0x00, 0x30, 0, 0, 0x7f})
	f.Add([]byte{0xa0, 0x12, 0, 0, 0xff, 0xa1, 0x12, 0, 0, 0x24, 0xa2, 0x12, 0, 0, 0xc5})
	// found a search for a table's anchor in a machine that had been reset
	f.Add([]byte{0xa1, 0x12, 0, 0, 0x74})
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := bytes.Clone(program)
		for ; len(edits) >= 5; edits = edits[5:] {
			b[int(binary.LittleEndian.Uint32(edits))%len(b)] = edits[4]
		}
		im, err := image.Open(bytes.NewReader(b), int64(len(b)), "fuzzed")
		if err != nil {
			return
		}
		p, err := recovery.Recover(im)
		if err != nil {
			return
		}
		for _, r := range p.Routines {
			if r.LeftOut == "" {
				checkRoutine(t, p, r)
			}
			for b := range r.Blocks {
				p.Callee(r, b)
				r.CFA(r.Blocks[b].Lo)
			}
		}
	})
}
