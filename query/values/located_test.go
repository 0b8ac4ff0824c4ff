package values

import (
	"encoding/binary"
	"testing"

	"wpptrace/compress/wet/machine"
)

// fake is a moment at which a general register has 0x1000 times its number, a byte of memory the
// low byte of its address, and nothing is known of r9 and of memory from 0x100000 on.
type fake struct{}

func (fake) General(n int) (uint64, machine.Knowledge) {
	if n == 9 {
		return 0, machine.Unknown
	}
	return uint64(n) * 0x1000, machine.Confirmed
}

func (fake) Vector(n int) (*[32]byte, *[32]machine.Knowledge) {
	data, sure := [32]byte{byte(n), 1}, [32]machine.Knowledge{}
	for i := range 16 {
		sure[i] = machine.Confirmed
	}
	return &data, &sure
}

func (fake) BiasOf(image int) uint64 { return uint64(image) << 12 }

func (fake) Read(addr uint64, to []byte) machine.Knowledge {
	if addr >= 1<<20 {
		return machine.Unknown
	}
	for i := range to {
		to[i] = byte(addr) + byte(i)
	}
	return machine.Unconfirmed
}

// TestEvaluate: what expressions mean (DWARF 5, sections 2.5 and 2.6), by hand.
func TestEvaluate(t *testing.T) {
	entry := &Entry{machine.RDI: {77, machine.Confirmed}}
	for name, c := range map[string]struct {
		code  []byte
		from  int64
		size  int
		want  uint64
		known machine.Knowledge
	}{
		"register":         {[]byte{0x55}, 0, 8, 0x7000, machine.Confirmed}, // rdi is the 7th
		"its high half":    {[]byte{0x55}, 4, 4, 0, machine.Confirmed},
		"behind it":        {[]byte{0x55}, 8, 1, 0, machine.Unknown},
		"unknown register": {[]byte{0x59}, 0, 8, 0, machine.Unknown},
		"xmm2":             {[]byte{0x63}, 0, 4, 0x102, machine.Confirmed},
		"ymm2's high half": {[]byte{0x63}, 16, 4, 0, machine.Unknown},
		"memory":           {[]byte{0x75, 0x12}, 0, 2, 0x1312, machine.Unconfirmed},
		"a field of it":    {[]byte{0x75, 0x12}, 3, 1, 0x15, machine.Unconfirmed},
		"unknown address":  {[]byte{0x79, 0}, 0, 1, 0, machine.Unknown},
		"address": {[]byte{3, 0x21, 0, 0, 0, 0, 0, 0, 0},
			0, 1, 0x21, machine.Unconfirmed},
		"what is led to": {[]byte{0x75, 0x10, 0x94, 1, 0x23, 5},
			0, 1, 0x15, machine.Unconfirmed},
		"sum":              {[]byte{0x75, 2, 0x9f}, 0, 8, 0x7002, machine.Confirmed},
		"at entry":         {[]byte{0xa3, 1, 0x55, 0x9f}, 0, 4, 77, machine.Confirmed},
		"unknown at entry": {[]byte{0xa3, 1, 0x51, 0x9f}, 0, 4, 0, machine.Unknown},
		"implicit":         {[]byte{0x9e, 3, 7, 8, 9}, 1, 2, 0x908, machine.Confirmed},
		"pieces": {[]byte{0x55, 0x93, 2, 0x35, 0x9f, 0x93, 2},
			0, 4, 0x57000, machine.Confirmed},
		"a piece is gone":   {[]byte{0x93, 4, 0x55, 0x93, 4}, 0, 8, 0, machine.Unknown},
		"the one behind it": {[]byte{0x93, 4, 0x55, 0x93, 4}, 4, 4, 0x7000, machine.Confirmed},
		"a piece of memory": {[]byte{0x75, 1, 0x93, 2}, 0, 2, 0x201, machine.Unconfirmed},
		"sign extended": {[]byte{0x08, 0xfe, 0x08, 56, 0x24, 0x08, 56, 0x26, 0x9f}, 0, 8,
			^uint64(1), machine.Confirmed},
		"minus": {[]byte{0x38, 0x33, 0x1c, 0x9f}, 0, 8, 5, machine.Confirmed},
		"divided": {[]byte{0x11, 0x79, 0x33, 0x1b, 0x9f},
			0, 8, ^uint64(1), machine.Confirmed},
		"less": {[]byte{0x11, 0x7f, 0x33, 0x2d, 0x9f}, 0, 8, 1, machine.Confirmed},
		"rotated": {[]byte{0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c, 0x9f},
			0, 8, 4, machine.Confirmed},
		"over":           {[]byte{0x31, 0x35, 0x14, 0x22, 0x22, 0x9f}, 0, 8, 7, machine.Confirmed},
		"shifted by 200": {[]byte{0x31, 0x08, 200, 0x24, 0x9f}, 0, 8, 0, machine.Confirmed},
	} {
		e := evaluation{at: fake{}, entry: entry, image: 0}
		p, ok := e.evaluate(c.code)
		got, k := p.read(fake{}, c.from, c.size)
		if !ok || got != c.want || k != c.known {
			t.Errorf("%s: got %#x, %d, %v, want %#x, %d", name, got, k, ok, c.want, c.known)
		}
	}
	for name, code := range map[string][]byte{
		"nothing": {}, "by zero": {0x31, 0x30, 0x1b, 0x9f}, "too few": {0x31, 0x22},
		"no register": {0x90, 33}, "st0": {0x90, 40}, "relative to a frame": {0x91, 8},
	} {
		e := evaluation{at: fake{}}
		if p, ok := e.evaluate(code); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// FuzzEvaluate: whatever an expression is, what it gives is known only if all that it uses is, and
// no unknown byte is anything but 0.
func FuzzEvaluate(f *testing.F) {
	f.Add([]byte{0x75, 0x10, 0x94, 1, 0x23, 5}, uint8(4))
	f.Add([]byte{0x93, 4, 0x55, 0x93, 4}, uint8(8))
	f.Add(binary.LittleEndian.AppendUint64([]byte{3}, 1<<63), uint8(1))
	f.Fuzz(func(t *testing.T, code []byte, size uint8) {
		e := evaluation{at: fake{}}
		p, ok := e.evaluate(code)
		if !ok {
			return
		}
		if n, k := p.read(fake{}, 0, int(size%8)+1); k == machine.Unknown && n != 0 {
			t.Errorf("%x: %x is unknown", code, n)
		}
	})
}
