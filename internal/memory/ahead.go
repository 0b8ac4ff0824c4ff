package memory

import (
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// The heap grows by what is asked for, rounded up to more of these.
	growth = 4 << 20
	// where it grows: the runtime takes addresses in pieces of this size and alignment
	arena = 64 << 20
)

// Ahead is for a process that has just begun, answers one question and ends. The heap has room for
// 8 MB more at once, in large pages where the kernel has them: the faults of small pages take a
// virtual machine longer than such a question does. The collector begins at 32 MB, which most
// questions do not take, and leaves four times what is alive from then on.
func Ahead() {
	debug.SetGCPercent(800)
	before := uintptr(unsafe.Pointer(new([64]byte))) // in a part of the heap that is small yet
	var block []byte
	// Neither fits in the room that there is, and each leaves as much more behind it. They are not
	// touched: they take addresses, and no memory.
	for _, room := range []int{growth, 2 * growth} {
		block = make([]byte, room+1)
	}
	runtime.AddCleanup(&block[0], func(int) { debug.SetGCPercent(400) }, 0)
	// Where in an arena the heap begins is drawn by lot: it may be in the next one by now. It is
	// only advice, and says that it failed where a part of the addresses is not taken yet.
	first := before &^ (arena - 1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, first, 2*arena, unix.MADV_HUGEPAGE)
}
