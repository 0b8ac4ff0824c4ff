package image

import "encoding/binary"

// A cursor reads the variable-length encodings of DWARF. Once a read fails, all that follow fail
// and give zero.
type cursor struct {
	data   []byte
	at     int
	addr   uint64 // of data[0]
	failed bool
}

func (c *cursor) fail() uint64 {
	c.failed = true
	c.at = len(c.data)
	return 0
}

func (c *cursor) more() bool { return !c.failed && c.at < len(c.data) }

// skip passes over n bytes.
func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.data)-c.at) {
		c.fail()
		return
	}
	c.at += int(n)
}

// take returns a cursor over the next n bytes and passes over them.
func (c *cursor) take(n uint64) cursor {
	from := c.at
	c.skip(n)
	if c.failed {
		return cursor{failed: true}
	}
	return cursor{data: c.data[:c.at], at: from, addr: c.addr}
}

func (c *cursor) byte() byte {
	if c.at >= len(c.data) {
		return byte(c.fail())
	}
	c.at++
	return c.data[c.at-1]
}

// uint reads 2, 4 or 8 bytes.
func (c *cursor) uint(size int) uint64 {
	if size > len(c.data)-c.at {
		return c.fail()
	}
	b := c.data[c.at:]
	c.at += size
	switch size {
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

const maxLEBBits = 63 // an encoding may go on behind that, but only to say nothing

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); ; shift += 7 {
		b := c.byte()
		if shift > maxLEBBits {
			return c.fail()
		}
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); ; {
		b := c.byte()
		if shift > maxLEBBits {
			return int64(c.fail())
		}
		v |= int64(b&0x7f) << shift
		shift += 7
		if b&0x80 == 0 {
			if shift < 64 && b&0x40 != 0 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (c *cursor) string() string {
	from := c.at
	for c.byte() != 0 {
	}
	if c.failed {
		return ""
	}
	return string(c.data[from : c.at-1])
}

// A pointerEncoding says how a pointer is written (Linux Standard Base, DW_EH_PE): its format in
// the low four bits, then what it is relative to, then whether it is the address of the pointer.
type pointerEncoding byte

const (
	omitted       pointerEncoding = 0xff
	formatMask    pointerEncoding = 0x0f
	relationMask  pointerEncoding = 0x70
	pcRelative    pointerEncoding = 0x10
	indirectFlag  pointerEncoding = 0x80
	formatAddress                 = 0x0
	formatULEB                    = 0x1
	formatU16                     = 0x2
	formatU32                     = 0x3
	formatU64                     = 0x4
	formatSLEB                    = 0x9
	formatS16                     = 0xa
	formatS32                     = 0xb
	formatS64                     = 0xc
)

// pointer reads an encoded pointer; zero means none. It fails on what is relative to anything but
// itself.
func (c *cursor) pointer(e pointerEncoding) uint64 {
	if e == omitted {
		return 0
	}
	self := c.addr + uint64(c.at)
	v := c.pointerValue(e & formatMask)
	if v == 0 || c.failed {
		return 0
	}
	switch e &^ formatMask {
	case 0:
		return v
	case pcRelative:
		return v + self
	}
	return c.fail()
}

func (c *cursor) pointerValue(format pointerEncoding) uint64 {
	switch format {
	case formatAddress, formatU64, formatS64:
		return c.uint(8)
	case formatULEB:
		return c.uleb()
	case formatSLEB:
		return uint64(c.sleb())
	case formatU16:
		return c.uint(2)
	case formatS16:
		return uint64(int16(c.uint(2)))
	case formatU32:
		return c.uint(4)
	case formatS32:
		return uint64(int32(c.uint(4)))
	}
	return c.fail()
}
