package states_test

import (
	"fmt"

	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
)

// The registers of a run are followed along its steps.
func Example() {
	s, err := states.Load("values_one")
	if err != nil {
		panic(err)
	}
	var r truth.Replay
	steps := s.Trace.Threads[0].Values
	for i := range steps {
		r.Before(&steps[i])
		r.After(&steps[i])
	}
	fmt.Println(len(steps) == s.Trace.Total(), r.Registers[truth.FSBase] != 0)
	// Output: true true
}
