package sweep

import (
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
	for addr, want := range map[uint64]int{0xf: -1, 0x10: 0, 0x11: -1, 0x12: 1, 0x13: 2, 0x14: -1,
		0x17: 3, 0x18: -1, 0x20: -1, 0x27: -1, 0x3e: -1, 0x40: 4, 0x42: -1, 0x43: -1} {
		for i := range c.Pieces {
			if got := c.findFrom(&c.Pieces[i], addr); got != want {
				t.Errorf("at %x, from piece %d: instruction %d, want %d", addr, i, got, want)
			}
		}
	}
}
