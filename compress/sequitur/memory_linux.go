package sequitur

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped is the size, in bytes, from which memory is mapped: it grows where it stands, goes back to
// the system at once, and what of it is not used yet takes none.
const mapped = 1 << 16

// reserve is how many times the addresses that are needed are asked for, to grow into.
const reserve = 16

// huge is the size of a huge page, in which larger memory is asked for.
const huge = 2 << 20

// resize returns a slice of n elements, at least as many as s has, that begins with those of s, and
// zeros behind them. s must have come from resize or allocate, and is used no more.
func resize[T node | uint64](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	room := roomFor[T](n)
	if isMapped[T](cap(s)) {
		if b, err := unix.Mremap(bytesOf(s), room*sizeOf[T](), unix.MREMAP_MAYMOVE); err == nil {
			return elementsOf[T](b)[:n]
		}
	}
	bigger := allocate[T](n)
	copy(bigger, s)
	release(s)
	return bigger
}

// allocate returns n zeros.
func allocate[T node | uint64](n int) []T {
	if isMapped[T](n) {
		b, err := unix.Mmap(-1, 0, roomFor[T](n)*sizeOf[T](), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err == nil {
			return elementsOf[T](b)[:n]
		}
	} // a system that has no more mappings may have memory
	return make([]T, n)
}

// release gives the memory of a slice from allocate or resize back.
func release[T node | uint64](s []T) {
	if isMapped[T](cap(s)) {
		_ = unix.Munmap(bytesOf(s)) // fails for what is not mapped, which the collector takes
	}
}

func sizeOf[T node | uint64]() int {
	var element T
	return int(unsafe.Sizeof(element))
}

func isMapped[T node | uint64](n int) bool { return n*sizeOf[T]() >= mapped }

// roomFor is how many elements to map where n are needed: whole huge pages, which are not parted
// then when they are mapped elsewhere.
func roomFor[T node | uint64](n int) int {
	n *= reserve
	if n*sizeOf[T]() < huge {
		return n
	}
	return (n + huge - 1) / huge * huge
}

func bytesOf[T node | uint64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), cap(s)*sizeOf[T]())
}

// elementsOf returns the elements in mapped memory. Half the time goes into finding pages where
// they are not huge.
func elementsOf[T node | uint64](b []byte) []T {
	if len(b) >= huge {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/sizeOf[T]())
}
