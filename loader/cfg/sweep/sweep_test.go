package sweep

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/x86"
)

// A lock prefix and the instruction behind it, which programs jump to, both begin an instruction.
func TestFind(t *testing.T) {
	c := &Code{
		Insns: []cfg.Insn{{Addr: 0x10, Inst: x86.Inst{Len: 2}},
			{Addr: 0x12, Inst: x86.Inst{Len: 5}}, {Addr: 0x13, Inst: x86.Inst{Len: 4}}, {Addr: 0x17,
				Inst: x86.Inst{Len: 1}},
			{Addr: 0x40, Inst: x86.Inst{Len: 3}}},
		// bytes that do not decode
		Pieces: []Piece{{Range: &image.Range{Lo: 0x10, Hi: 0x18}, Last: 4},
			{Range: &image.Range{Lo: 0x20, Hi: 0x28}, First: 4, Last: 4},
			{Range: &image.Range{Lo: 0x3e, Hi: 0x43}, First: 4, Last: 5}},
		ends: []uint64{0x18, 0x28, 0x43},
	}
	c.indexPieces()
	for addr, want := range map[uint64]int{0xf: -1, 0x10: 0, 0x11: -1, 0x12: 1, 0x13: 2, 0x14: -1,
		0x17: 3, 0x18: -1, 0x20: -1, 0x27: -1, 0x3e: -1, 0x40: 4, 0x42: -1, 0x43: -1} {
		for i := range c.Pieces {
			if got := c.findFrom(&c.Pieces[i], addr); got != want {
				t.Errorf("at %x, from piece %d: instruction %d, want %d", addr, i, got, want)
			}
		}
	}
}

// A piece is found by the index as by a look at all, whatever lies between pieces.
func TestFindPiece(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, farthest := range []uint64{1, 2, 40, 5000, 1 << 40} {
		c, at := &Code{}, r.Uint64N(farthest)
		for range 1 + r.IntN(200) {
			at += r.Uint64N(farthest)
			end := at + 1 + r.Uint64N(64)
			c.Pieces = append(c.Pieces, Piece{Range: &image.Range{Lo: at, Hi: end}})
			c.ends, at = append(c.ends, end), end
		}
		c.indexPieces()
		check := func(addr uint64) {
			want := slices.IndexFunc(c.Pieces,
				func(p Piece) bool { return p.Lo <= addr && addr < p.Hi })
			if got := c.FindPiece(addr); got != want {
				t.Fatalf("up to %d between pieces: %x is in %d, want %d", farthest, addr, got, want)
			}
		}
		check(0)
		check(math.MaxUint64)
		for i := range c.Pieces {
			for near := range uint64(3) {
				check(c.Pieces[i].Lo - 1 + near)
				check(c.ends[i] - 1 + near)
			}
			check(r.Uint64N(c.ends[len(c.ends)-1] + 10))
		}
	}
	if got := (&Code{}).FindPiece(1); got != -1 {
		t.Errorf("no pieces: found %d", got)
	}
}
