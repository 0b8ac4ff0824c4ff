package sharing

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// records are what the kernel records of a thread, in their order: what it maps, and which threads
// it starts.
type records struct {
	event int
	ring  []byte // a page that says how far it goes, and the records
}

// ringSize is that of the records: some 5,000. One is not longer than longest.
const (
	ringSize = 1 << 19
	longest  = 8 << 10
)

// open has the kernel record from now on.
func open(thread int) (*records, error) {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_DUMMY,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitMmap | unix.PerfBitMmapData | unix.PerfBitMmap2 | unix.PerfBitTask |
			unix.PerfBitExcludeKernel,
	}
	event, err := unix.PerfEventOpen(&attr, thread, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("have the kernel record what it maps: %w",
			os.NewSyscallError("perf_event_open", err))
	}
	ring, err := unix.Mmap(event, 0, os.Getpagesize()+ringSize, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED)
	if err != nil {
		unix.Close(event)
		return nil, fmt.Errorf("map what the kernel records: %w", err)
	}
	return &records{event, ring}, nil
}

func (r *records) close() {
	unix.Munmap(r.ring)
	unix.Close(r.event)
}

// read hands over the mappings that have been made since it was called last. It returns false where
// some were lost, or where the process has started a thread, what that maps is not recorded, or has
// a queue of requests.
func (r *records) read(process int, each func(mapping)) (isWhole bool) {
	page := (*unix.PerfEventMmapPage)(unsafe.Pointer(unsafe.SliceData(r.ring)))
	head := atomic.LoadUint64(&page.Data_head)
	isWhole = head-page.Data_tail < ringSize-longest // the kernel says late what it had no room for
	for tail := page.Data_tail; tail < head && isWhole; {
		record := r.record(tail)
		tail += uint64(len(record))
		isWhole = take(record, process, each)
		atomic.StoreUint64(&page.Data_tail, tail)
	}
	return isWhole
}

// record returns the record at a position, which may run over the ring's end.
func (r *records) record(at uint64) []byte {
	data := r.ring[len(r.ring)-ringSize:]
	at %= ringSize
	n := int(binary.NativeEndian.Uint16(data[at+6:])) // headers do not run over it
	rest := data[at:]
	if n <= len(rest) {
		return rest[:n]
	}
	return append(append(make([]byte, 0, n), rest...), data[:n-len(rest)]...)
}

// take takes a record, struct perf_event_header and what follows it. It returns false where that
// says that something is missing.
func take(record []byte, process int, each func(mapping)) bool {
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(record[at:]) }
	long := func(at int) uint64 { return binary.NativeEndian.Uint64(record[at:]) }
	const mmap2, fork, forked = 72, 16, 8
	switch kind := word(0); {
	case len(record) >= mmap2 && kind == unix.PERF_RECORD_MMAP2:
		x := mapping{place: place{long(16), long(16) + long(24)},
			code:   word(64)&unix.PROT_EXEC != 0,
			shared: word(68)&unix.MAP_SHARED != 0,
			write:  word(64)&unix.PROT_WRITE != 0}
		if inode := long(48); inode != 0 {
			x.file = file{uint64(word(40)), uint64(word(44)), inode}
		}
		if x.mayChange() {
			each(x)
		}
		return !isQueue(unix.ByteSliceToString(record[mmap2:]))
	case len(record) > fork && kind == unix.PERF_RECORD_FORK:
		return int(word(forked)) != process
	case kind == unix.PERF_RECORD_EXIT:
		return true
	}
	return false
}
