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
// all calls have returned. If some panic, others may not be made, and Each panics with the Panic of
// the first one, so that its caller can recover.
func Each(n int, turn func(i int)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	var failed atomic.Pointer[Panic]
	work := func() {
		defer func() {
			if cause := recover(); cause != nil {
				failed.CompareAndSwap(nil, &Panic{cause, debug.Stack()})
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
	if first := failed.Load(); first != nil {
		panic(first)
	}
}

// A Panic is what a call panicked with, and the stack that it had.
type Panic struct {
	Cause any
	Stack []byte
}

// Error says both.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n%s", p.Cause, p.Stack) }

// Both calls two functions at a time, and returns when both have returned. It panics as Each does.
func Both(a, b func()) {
	Each(2, func(i int) { [...]func(){a, b}[i]() })
}
