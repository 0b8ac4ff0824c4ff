package guard

import (
	"runtime"
	"slices"
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

// A priority that is lowered meanwhile comes behind one that is raised, and is as it was in the
// end.
func TestLowerPriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ownNice()
	var steps []int
	note := func() { steps = append(steps, ownNice()) }
	restore := LowerPriority()
	note()
	calm := RaisePriority()
	note()
	restore()
	note()
	restore = LowerPriority()
	note()
	calm()
	note()
	restore()
	note()
	lower := min(before+5, 19)
	want := []int{lower, -20, -20, -20, lower, before}
	if !slices.Equal(steps, want) {
		t.Errorf("nice %d, want %d", steps, want)
	}
}
