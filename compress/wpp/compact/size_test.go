package compact

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os/exec"
	"testing"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/internal/testenv"
)

// nestedLoops is a stream of three loops in each other whose bodies branch by the counters and, now
// and then, by chance.
func nestedLoops(n int) []uint32 {
	random := rand.New(rand.NewPCG(13, 14))
	var s []uint32
	for i := uint32(0); len(s) < n; i++ {
		s = append(s, 300+i%2)
		for j := range 4 + i%5 {
			s = append(s, 302, 303+(i+j)%2)
			for k := range 3 + j%4 {
				s = append(s, 307)
				if k%3 == 0 || random.IntN(50) == 0 {
					s = append(s, 308)
				}
			}
		}
		s = append(s, 309)
	}
	return s[:n]
}

// TestSmallerThanXz: a grammar takes no more bytes in a snapshot than xz -9e makes of the stream.
func TestSmallerThanXz(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		testenv.Missing(t, err)
	}
	const n = 1 << 18
	for name, stream := range map[string][]uint32{"nested loops": nestedLoops(n),
		"loops of chance": wpptest.Loops(n)} {
		var raw []byte
		for _, v := range stream {
			raw = binary.LittleEndian.AppendUint32(raw, v)
		}
		xz := exec.Command("xz", "-9e", "--stdout")
		xz.Stdin = bytes.NewReader(raw)
		packed, err := xz.Output()
		if err != nil {
			t.Fatal(err)
		}
		g := sequitur.NewFolding() // as wpptrace does
		g.AppendAll(stream)
		ours := codedSize(wpp.FromSequitur(g))
		t.Logf("%s: %d bytes, xz %d", name, ours, len(packed))
		if ours > len(packed) {
			t.Errorf("%s: %d bytes, more than the %d of xz", name, ours, len(packed))
		}
	}
}
