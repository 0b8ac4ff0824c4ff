package frequency_test

import (
	"fmt"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan/planner/frequency"
)

// A loop is taken to go round ten times.
func ExampleEstimate() {
	r := &cfg.Routine{Blocks: []cfg.Block{
		{End: cfg.Fall, Succ: []int{1}},
		{End: cfg.Jcc, Succ: []int{1, 2}},
		{End: cfg.Ret},
	}}
	runs := frequency.Estimate(r)
	fmt.Printf("the loop runs %.0f times as often as the entry\n", runs[1]/runs[0])
	// Output: the loop runs 10 times as often as the entry
}
