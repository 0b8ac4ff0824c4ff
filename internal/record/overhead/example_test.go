package overhead_test

import (
	"fmt"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// Probes may take 5 % of the process's own CPU time. Those of a window took more.
func ExampleScheduler() {
	awake := func() bool { return false }
	s := overhead.NewScheduler(0.05,
		overhead.Limits{Window: 10 * time.Millisecond, Stall: time.Second}, target.Times{}, 1, nil)
	s.ChargeChange(s.BeginChange(), 1, attach.Changes{}) // probes went in
	s.Open()
	s.Charge(overhead.Reading{
		At:   time.Now(),
		Used: target.Times{CPU: 50 * time.Millisecond},
		Hits: overhead.NewHitCost(40*time.Millisecond, 0),
	})
	s.Close()
	fmt.Println(s.Decide(awake) == overhead.OpenWindow, s.Wait() > 0)

	s.Charge(overhead.Reading{ // without probes, it earns
		At:   time.Now(),
		Used: target.Times{CPU: 5 * time.Second},
		Hits: overhead.NewHitCost(40*time.Millisecond, 0),
	})
	fmt.Println(s.Wait())
	// Output:
	// false true
	// 0s
}
