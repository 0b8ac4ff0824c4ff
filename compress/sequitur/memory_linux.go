package sequitur

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped is the size, in bytes, from which memory is mapped: it grows without being copied, goes back to the system at once, and what of it is not used yet
// takes none.
const mapped = 1 << 16

// huge is the size from which memory is asked for in huge pages.
const huge = 2 << 20

// room is how many elements to make room for where n are needed: what is mapped is only a range of addresses until it is used.
func room(n int) int {
	if n*int(unsafe.Sizeof(node{})) < mapped {
		return n + n/6 + 64
	}
	return 16 * n
}

// resize returns a slice of n elements that begins with those of s, and zeros behind them. s must have come from resize, and is used no more.
func resize[T node | uint64](s []T, n int) []T {
	var element T
	size := int(unsafe.Sizeof(element))
	was, is := cap(s)*size >= mapped, n*size >= mapped
	if was && is {
		if b, err := unix.Mremap(bytesOf(s), n*size, unix.MREMAP_MAYMOVE); err == nil {
			advise(b)
			return elementsOf[T](b, n)
		}
	}
	bigger := allocate[T](n)
	copy(bigger, s)
	release(s)
	return bigger
}

// allocate returns n zeros.
func allocate[T node | uint64](n int) []T {
	var element T
	if size := n * int(unsafe.Sizeof(element)); size >= mapped {
		if b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS); err == nil {
			advise(b)
			return elementsOf[T](b, n)
		}
	} // a system that has no more mappings may have memory
	return make([]T, n)
}

// release gives the memory of a slice from allocate or resize back.
func release[T node | uint64](s []T) {
	var element T
	if cap(s)*int(unsafe.Sizeof(element)) >= mapped {
		_ = unix.Munmap(bytesOf(s)) // fails for what is not mapped, which the collector takes
	}
}

func bytesOf[T node | uint64](s []T) []byte {
	var element T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), cap(s)*int(unsafe.Sizeof(element)))
}

func elementsOf[T node | uint64](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// advise has a large mapping made of huge pages, where there are any: half the time goes into finding pages else.
func advise(b []byte) {
	if len(b) >= huge {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
}
