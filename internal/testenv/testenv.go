// Package testenv knows what tests may expect of the machine. Where CI is set, all is installed
// that .ci/run asks for: a test that went without a program would go unnoticed there, and fails.
// It has the programs that tests of several packages compile, run and trace.
package testenv

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Missing ends a test for which something is not installed, as err says: it is skipped.
func Missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(err)
	} else {
		t.Skip(err)
	}
}

// Have reports whether there is a file that a test can do without.
func Have(t testing.TB, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	return err == nil
}

// ThreadTime is the CPU time of the thread so far: what else the machine does is not in it. The
// clock cannot fail.
func ThreadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// Heap is how many bytes of the heap are in use once what nothing refers to is gone, objects with
// finalizers too. It takes a few garbage collections. Nothing else may allocate meanwhile.
func Heap() int {
	for range 2 {
		// finalizers run a collection's batch after the other: the second of these runs after all
		// of the first
		ran := make(chan struct{})
		runtime.SetFinalizer(&struct{ ran chan struct{} }{ran},
			func(*struct{ ran chan struct{} }) { close(ran) })
		runtime.GC()
		<-ran
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
