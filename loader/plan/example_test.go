package plan_test

import (
	"fmt"

	"wpptrace/loader/cfg/absint"
	"wpptrace/loader/plan"
)

func ExampleRegistersOf() {
	const rsi, rdi = 6, 7
	before := absint.Unchanged()
	distance, _ := absint.Distance(before.At(rsi), before.At(rdi), 64)
	x, ok := plan.RegistersOf(distance)
	fmt.Printf("register %d minus register %d: %v\n", x.Reg, x.Minus, ok)
	// Output: register 6 minus register 7: true
}
