package entries_test

import (
	"fmt"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp/entries"
)

// Routine 0 calls through a pointer in its block 4, where its path 7 ends: routine 1 once, and
// external code, which calls routine 1 back.
func ExampleCounter() {
	var alphabet ops.Symbols
	counter := entries.NewCounter(&alphabet, func(uint32) (routine, block int, ok bool) {
		return 0, 4, true
	})
	thread := counter.Recorder(func(sym uint32, times uint64) {})
	for _, by := range []ops.Caller{ops.Traced, ops.External} {
		thread.NewPath(0, 7, 1)
		thread.EnterRoutine(1, by)
	}
	for call, n := range counter.Counts() {
		fmt.Println(call.Routine, call.Block, call.Callee, n.Traced, n.External)
	}
	// Output:
	// 0 4 1 1 1
}
