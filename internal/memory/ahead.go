package memory

import (
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// what Ahead has the heap grow by: with what a process has then, the collector runs soon
	// after, and gives it to what is allocated next
	aheadBytes = 14 << 20
	// where the heap grows: the runtime takes addresses in pieces of this size and alignment
	arena = 64 << 20
)

// Ahead is for a process that answers one question and ends. The collector leaves four times what
// is alive, 16 MB at least, and the heap grows to that at once, in large pages where the kernel has
// them. The faults of small pages take a virtual machine longer than such a question does.
func Ahead() {
	debug.SetGCPercent(400)
	block := make([]byte, aheadBytes)
	first := uintptr(unsafe.Pointer(&block[0])) &^ (arena - 1)
	// it is only advice, and fails where a part of the addresses is not taken yet
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, arena, unix.MADV_HUGEPAGE)
}
