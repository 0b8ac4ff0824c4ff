package overhead_test

import (
	"fmt"
	"time"

	"wpptrace/internal/record/overhead"
)

func ExampleBudget() {
	b := overhead.NewBudget(0.05)
	b.Account(overhead.Use{Own: 10 * time.Millisecond, Probes: 40 * time.Millisecond})
	fmt.Println(b.Overdrawn())
	b.Account(overhead.Use{Own: 790 * time.Millisecond})
	fmt.Println(b.Overdrawn(), b.Overhead(0))
	// Output:
	// true
	// false 0.05
}
