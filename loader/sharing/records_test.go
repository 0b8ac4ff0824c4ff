package sharing

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzRecords: no record of the kernel's is read beyond its end, and a mapping of one is of nobody
// or of others.
func FuzzRecords(f *testing.F) {
	mapping2 := make([]byte, 80)
	binary.NativeEndian.PutUint32(mapping2, unix.PERF_RECORD_MMAP2)
	binary.NativeEndian.PutUint32(mapping2[68:], unix.MAP_SHARED)
	forked := make([]byte, 32)
	binary.NativeEndian.PutUint32(forked, unix.PERF_RECORD_FORK)
	f.Add(mapping2)
	f.Add(forked)
	f.Add(forked[:8])
	f.Fuzz(func(t *testing.T, record []byte) {
		if len(record) < 8 {
			return // all have a header
		}
		take(record, 1, func(x mapping) {
			if !x.shared && x.file.inode == 0 {
				t.Errorf("%+v", x)
			}
		})
	})
}

// TestRecords: a record that runs over the ring's end is put together, and what says that some are
// lost is not passed over.
func TestRecords(t *testing.T) {
	r := records{ring: make([]byte, 4096+ringSize)}
	data := r.ring[4096:]
	at := uint64(ringSize - 16)
	binary.NativeEndian.PutUint32(data[at:], unix.PERF_RECORD_MMAP2)
	binary.NativeEndian.PutUint16(data[at+6:], 80)
	binary.NativeEndian.PutUint32(data[68-16:], unix.MAP_SHARED)
	var got []mapping
	record := r.record(at + 3*ringSize)
	if !take(record, 1, func(x mapping) { got = append(got, x) }) || len(got) != 1 {
		t.Errorf("%x: %+v", record, got)
	}
	lost := make([]byte, 24)
	binary.NativeEndian.PutUint32(lost, unix.PERF_RECORD_LOST)
	if take(lost, 1, nil) {
		t.Error("lost records are passed over")
	}
}
