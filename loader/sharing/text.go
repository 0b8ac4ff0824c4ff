package sharing

import (
	"bytes"

	"wpptrace/loader/arch"
)

// A Text is the code of a process as it is now, of which some is read at a time.
type Text struct {
	of       *Memory
	writable []place // once
	at       uint64
	read     []byte
}

// Text returns the code of the process.
func (m *Memory) Text() *Text {
	t := &Text{of: m}
	for x := range m.noted {
		if x.write {
			t.writable = append(t.writable, x.place)
		}
	}
	return t
}

// IsRewritten reports whether code at an address may have been other than a file has it since the
// process is followed: it could be written, as of Update, or is other now. Breakpoints of probes do
// not count: probed reports whether one goes to a byte. Of a process that has ended, or whose
// memory we may not open, it is not known what its code is, nor ever what other threads than the
// first have let be written.
func (t *Text) IsRewritten(addr uint64, file []byte, probed func(at int) bool) bool {
	for _, x := range t.writable {
		if x.lo < addr+uint64(len(file)) && addr < x.hi {
			return true
		}
	}
	now := t.bytes(addr, len(file))
	for i := 0; i < len(now); i++ {
		switch {
		case now[i] == file[i]:
		case probed(i) && bytes.HasPrefix(file[i:], longNop):
			i += len(longNop) - 1
		case probed(i) && now[i] == arch.Native.Breakpoint():
		default:
			return true
		}
	}
	return false
}

// longNop is what Linux 6.18 and later replace by a call where a probe goes.
var longNop = []byte{0x0f, 0x1f, 0x44, 0, 0}

// bytes are those at an address; nil: they cannot be read.
func (t *Text) bytes(addr uint64, n int) []byte {
	if addr < t.at || addr+uint64(n) > t.at+uint64(len(t.read)) {
		const most = 1 << 16
		t.at, t.read = addr, make([]byte, max(most, n))
		got, _ := t.of.memory.ReadAt(t.read, int64(addr)) // as much as there is
		t.read = t.read[:got]
	}
	if n > len(t.read) {
		return nil
	}
	return t.read[addr-t.at:][:n]
}
