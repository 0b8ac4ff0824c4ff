package guard

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// RaisePriority has the calling goroutine, which stays on its thread, scheduled before others until
// it calls restore, where we have the privilege (CAP_SYS_NICE). What is half done to a process that
// runs is to be done soon: each probe that goes into a busy one waits for its locks, and on a
// crowded machine thirty thousand of them for the scheduler each time.
func RaisePriority() (restore func()) {
	runtime.LockOSThread()
	tid := unix.Gettid()
	const most = 20
	before, err := unix.Getpriority(unix.PRIO_PROCESS, tid) // 20 less the nice value
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, tid, -most) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		// lower than it is, which nobody is denied
		_ = unix.Setpriority(unix.PRIO_PROCESS, tid, most-before)
		runtime.UnlockOSThread()
	}
}
