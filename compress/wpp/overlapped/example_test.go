package overlapped_test

import (
	"fmt"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp/overlapped"
)

// Path 0 of routine 0 ends with a back edge to the head of a loop, where path 1 begins, which does
// so, too.
func ExamplePairs() {
	var alphabet ops.Symbols
	pairs := overlapped.NewPairs(&alphabet, func(sym uint32) overlapped.Path {
		start := ops.StartEntry
		if alphabet.Meaning(sym).Path == 1 {
			start = ops.StartLoop
		}
		return overlapped.Path{Start: start, End: ops.EndLoop, Whole: true, Callee: -1}
	}, func(kind overlapped.Kind, p, q uint32, times uint64) {
		fmt.Println(kind, p, "!", q, times)
	})
	thread := pairs.Thread()
	thread.EnterRoutine(0, ops.External)
	thread.NewPath(0, 0, 1) // as a decoder says it
	thread.NewPath(0, 1, 3)
	// Output:
	// loop 0 ! 1 1
	// loop 1 ! 1 2
}
