package wet_test

import (
	"fmt"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// counter counts executed instructions.
type counter int

func (c *counter) Executed(*wet.Executed) error {
	*c++
	return nil
}

// Count the instructions of the first thread of a snapshot, each of which comes with its values.
func ExampleSegments() {
	s := &wpp.Snapshot{Threads: make([]wpp.Thread, 1)} // as store.ReadFile returns it
	segments, err := wet.Segments(s, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	var n counter
	for i := range segments {
		if err := segments[i].Replay(0, ^uint64(0), &n); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(n, "instructions in", len(segments), "segments")
	// Output: 0 instructions in 0 segments
}
