package govern_test

import (
	"fmt"
	"time"

	"wpptrace/loader/govern"
)

func ExampleBudget() {
	b := govern.New(0.05)
	b.Account(govern.Use{Own: 10 * time.Millisecond, Probes: 40 * time.Millisecond})
	fmt.Println(b.Overdrawn())
	b.Account(govern.Use{Own: 790 * time.Millisecond})
	fmt.Println(b.Overdrawn(), b.Overhead(0))
	// Output:
	// true
	// false 0.05
}
