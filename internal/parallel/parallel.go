// Package parallel spreads work over the CPUs.
package parallel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Each calls turn with each number from 0 to n-1, in any order, several at a time, and returns when
// all calls have returned. If some panic, others may not be made, and Each panics with what the
// first one did, so that its caller can recover.
func Each(n int, turn func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	var failed atomic.Pointer[string]
	work := func() {
		defer func() {
			if cause := recover(); cause != nil {
				text := fmt.Sprintf("%v\n%s", cause, debug.Stack())
				failed.CompareAndSwap(nil, &text)
				next.Store(int64(n))
			}
		}()
		for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
			turn(int(i))
		}
	}
	for range min(n, runtime.GOMAXPROCS(0)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	if text := failed.Load(); text != nil {
		panic(*text)
	}
}

// Both calls two functions at a time, and returns when both have returned. It panics as Each does.
func Both(a, b func()) {
	Each(2, func(i int) { [...]func(){a, b}[i]() })
}
