package guard

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// RaisePriority calls may be nested, hold for all threads, and leave them as they were.
func TestRaisePriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	nice := func() int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // of the thread
		if err != nil {
			t.Fatal(err)
		}
		return 20 - n
	}
	before := nice()
	restore := RaisePriority()
	inner := RaisePriority()
	other := make(chan int)
	go func() {
		runtime.LockOSThread() // which ends with it
		other <- nice()
	}()
	if got := <-other; got != -20 {
		t.Errorf("another thread: nice %d, want -20", got)
	}
	if got := nice(); got != -20 {
		t.Errorf("nice %d, want -20", got)
	}
	inner()
	if got := nice(); got != -20 {
		t.Errorf("nice %d after the inner one, want -20", got)
	}
	restore()
	if after := nice(); after != before {
		t.Errorf("nice %d before, %d after", before, after)
	}
}
