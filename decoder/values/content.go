package values

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wet/memory"
	"wpptrace/loader/loads"
)

// A content is what memory holds at a place of the walk, as far as that is known, and what
// functions make of it that only read.
type content struct {
	recorder *Recorder // knows what nobody writes
	memory   *memory.Memory
	reads    [2][]loads.Read // of the last hit; the second if stores have not gone there
	// what result has found, where memcmp's variant decides what it returns
	differs bool
	found   difference
}

// unstored appends what was read, but for what the thread has stored there since.
func (c *content) unstored(to []loads.Read) []loads.Read {
	for _, list := range c.reads {
		for i := range list {
			if r := &list[i]; !r.Failed {
				to = c.parts(to, r)
			}
		}
	}
	return to
}

// parts appends those of a read where the thread has not stored since.
func (c *content) parts(to []loads.Read, r *loads.Read) []loads.Read {
	stored := c.memory.Stored(r.Addr, r.Size)
	if stored == 0 {
		return append(to, *r)
	}
	for lo := 0; lo < r.Size; lo++ {
		hi := lo
		for hi < r.Size && stored>>hi&1 == 0 {
			hi++
		}
		if hi > lo {
			to = append(to, part(r, uint64(lo), uint64(hi)))
			lo = hi
		}
	}
	return to
}

// result is what a function returns that only reads, if what it reads is known. Where bytes differ,
// memcmp returns what the C library's variant for the processor makes of them, which must have been
// seen; strcmp returns the difference of the first two that differ, in all variants.
func (c *content) result(name string, m *machine.Machine) (v uint64, ok bool) {
	args := [3]uint64{}
	has := 0 // so many of them are known
	for i, n := range [...]int{machine.RDI, machine.RSI, machine.RDX} {
		is, k := m.General(n)
		if args[i] = is; k != machine.Unknown && has == i {
			has++
		}
	}
	const all = math.MaxUint64
	switch name, _, _ = strings.Cut(name, "@"); {
	case has == 0:
	case name == "strlen":
		n, ok := c.find(args[0], all, 0)
		return n, ok
	case has == 1:
	case name == "strcmp":
		return c.compare(args[0], args[1], all)
	case name == loads.CompareStrings:
		return c.compareStrings(args[0], args[1])
	case has == 2:
	case name == "memcmp" || name == "bcmp":
		return c.compareBytes(args[0], args[1], args[2])
	case name == "strncmp":
		return c.compare(args[0], args[1], args[2])
	case name == "memchr":
		n, ok := c.find(args[0], args[2], byte(args[1]))
		if ok && n == args[2] {
			return 0, true
		}
		return args[0] + n, ok
	case name == loads.HashBytes:
		b := c.bytes(args[0], args[1])
		return hashOf(b, args[2]), uint64(len(b)) == args[1]
	}
	return 0, false
}

// hashOf is what libstdc++ makes of the bytes of a string, as its ABI has it: MurmurHash64A.
func hashOf(b []byte, seed uint64) uint64 {
	const by = 0xc6a4a7935bd1e995
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	hash := seed ^ uint64(len(b))*by
	for ; len(b) >= 8; b = b[8:] {
		hash = (hash ^ mix(binary.LittleEndian.Uint64(b)*by)*by) * by
	}
	if len(b) > 0 {
		var last [8]byte
		copy(last[:], b)
		hash = (hash ^ binary.LittleEndian.Uint64(last[:])) * by
	}
	return mix(mix(hash) * by)
}

// compareStrings compares two objects, each a pointer and a length. Where bytes differ it returns
// what memcmp does.
func (c *content) compareStrings(a, b uint64) (v uint64, ok bool) {
	x, y := c.bytes(a, 16), c.bytes(b, 16)
	if len(x) < 16 || len(y) < 16 {
		return 0, false
	}
	n, k := binary.LittleEndian.Uint64(x[8:]), binary.LittleEndian.Uint64(y[8:])
	v, ok = c.compareBytes(binary.LittleEndian.Uint64(x), binary.LittleEndian.Uint64(y), min(n, k))
	if ok && v == 0 {
		v = uint64(uint32(max(math.MinInt32, min(math.MaxInt32, int64(n-k)))))
	}
	return v, ok
}

// compareBytes is memcmp.
func (c *content) compareBytes(a, b, n uint64) (v uint64, ok bool) {
	x, y := c.bytes(a, n), c.bytes(b, n)
	if c.found, c.differs = differ(x, y, n); c.differs {
		return c.recorder.variant.returns(&c.found)
	}
	return 0, uint64(len(x)) == n && bytes.Equal(x, y)
}

// compare compares strings, n bytes of them at most.
func (c *content) compare(a, b, n uint64) (v uint64, ok bool) {
	x, y := c.bytes(a, n), c.bytes(b, n)
	for i := range min(len(x), len(y)) {
		switch {
		case x[i] != y[i]:
			return uint64(uint32(int32(x[i]) - int32(y[i]))), true
		case x[i] == 0:
			return 0, true
		}
	}
	return 0, uint64(min(len(x), len(y))) == n
}

// find finds the first one of n bytes that is this one; n: none is.
func (c *content) find(at, n uint64, is byte) (first uint64, ok bool) {
	b := c.bytes(at, n)
	if i := bytes.IndexByte(b, is); i >= 0 {
		return uint64(i), true
	}
	return n, uint64(len(b)) == n
}

// bytes are those that memory holds from an address on, as far as they are known, and most at most.
func (c *content) bytes(addr uint64, most uint64) []byte {
	var b [64]byte
	n := int(min(most, uint64(len(b))))
	if n == 0 {
		return nil
	}
	known := c.memory.Load(addr, b[:n], false).Known
	stored := c.memory.Stored(addr, n)
	for _, list := range c.reads {
		for i := range list {
			known |= overlay(&b, addr, n, stored|known, &list[i])
		}
	}
	for i := range n {
		if known>>i&1 != 0 || c.recorder.fixed.read(c.recorder, addr+uint64(i), b[i:i+1]) {
			continue
		}
		if !c.memory.IsCalm(addr+uint64(i), 1) {
			return bytes.Clone(b[:i])
		}
	}
	return bytes.Clone(b[:n])
}
