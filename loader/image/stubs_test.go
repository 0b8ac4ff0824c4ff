package image

import (
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each linker has stubs of its own; calls go to where they begin.
func TestStubs(t *testing.T) {
	const addr, slot = 0x1000, 0x3000
	through := func(at uint64, opcode ...byte) []byte {
		// an instruction with the slot as its operand
		end := at + uint64(len(opcode)) + 4
		return binary.LittleEndian.AppendUint32(opcode, uint32(slot-end))
	}
	endbr64, number := []byte{0xf3, 0x0f, 0x1e, 0xfa}, []byte{0x41, 0xbb, 7, 0, 0, 0}
	jump, load := []byte{0xff, 0x25}, []byte{0x4c, 0x8b, 0x1d}
	concat := func(parts ...[]byte) (code []byte) {
		for _, p := range parts {
			code = append(code, p...)
		}
		return code
	}
	for _, c := range []struct {
		name string
		code []byte
		want []uint64
		jump uint64 // the stub that only jumps; 0: there is none
	}{
		{"a jump", through(addr, jump...), []uint64{addr}, addr},
		{"behind endbr64", concat(endbr64, through(addr+4, jump...)), []uint64{addr, addr + 4},
			addr},
		{"of mold", concat(endbr64, number, through(addr+10, jump...)), []uint64{addr, addr + 10},
			0},
		{"of mold, without endbr64", concat(number, through(addr+6, jump...)),
			[]uint64{addr, addr + 6}, 0},
		{"a retpoline of lld", concat(through(addr, load...), []byte{0xe9, 0, 0, 0, 0}),
			[]uint64{addr}, 0},
		{"behind padding", concat([]byte{0xcc, 0xcc, 0x90}, endbr64, through(addr+7, jump...)),
			[]uint64{addr + 3, addr + 7}, addr + 3},
		{"behind another", concat(through(addr, jump...), []byte{0x66, 0x90}, endbr64,
			through(addr+12, jump...)), []uint64{addr, addr + 8, addr + 12}, addr + 8},
		{"behind what does not decode", concat([]byte{0x06}, endbr64, through(addr+5, jump...)),
			[]uint64{addr + 1, addr + 5}, addr + 1},
		{"through another slot", concat(jump, []byte{0, 0, 0, 0}), nil, 0},
	} {
		want := map[uint64]string{}
		for _, at := range c.want {
			want[at] = "setjmp"
		}
		got, jumps := map[uint64]string{}, map[uint64]uint64{}
		readStubs(Section{Addr: addr, Data: c.code}, map[uint64]string{slot: "setjmp"}, got, jumps)
		if to, ok := jumps[c.jump]; ok != (c.jump != 0) || ok && to != slot {
			t.Errorf("%s: %x jump through the slot", c.name, jumps)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
