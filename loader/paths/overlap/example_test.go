package overlap_test

import (
	"fmt"

	"wpptrace/loader/cfg"
	"wpptrace/loader/paths/overlap"
)

// for (...) { if (even) a(); else b(); }, with both inlined: how a round goes on is known up to the
// second predicate.
func ExampleGraph_Number() {
	g, err := overlap.Of(&cfg.Routine{Name: "loop", Blocks: []cfg.Block{
		{End: cfg.Jcc, Succ: []int{1, 4}}, // 0: no more?
		{End: cfg.Jcc, Succ: []int{3, 2}}, // 1: even?
		{End: cfg.Jmp, Succ: []int{0}},    // 2
		{End: cfg.Jmp, Succ: []int{0}},    // 3
		{End: cfg.Ret},                    // 4
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	numbers, err := g.Number(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	loop, err := numbers.Loop(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for number := range loop.Total {
		e, err := loop.Decode(number)
		fmt.Println(number, e.Blocks, err)
	}
	fmt.Println("greatest useful degree:", loop.Most)
	// Output:
	// 0 [0] <nil>
	// 1 [0 1] <nil>
	// greatest useful degree: 2
}
