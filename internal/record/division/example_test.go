package division_test

import (
	"log"
	"os"
	"time"

	"wpptrace/internal/record/division"
	"wpptrace/internal/record/overhead"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// Before the first window of a process at work it is found out which of many sites are hot; after
// each window, which have turned cold.
func ExampleDivision() {
	var (
		session  *attach.Session // loaded, and ready
		process  *target.Process
		exe      *os.File // that it runs
		pl       *plan.Plan
		schedule *overhead.Scheduler
		usage    division.Usage
	)
	d := division.New(session, process, exe, pl, schedule, usage)
	d.Begin(nil) // there are no samples
	for !d.IsSettled() {
		if err := d.Settle(); err != nil {
			log.Fatal(err)
		}
		process.Wait(time.Millisecond)
	}
	// A window opens, and closes.
	if err := d.Cool(schedule.LeastInWindows()); err != nil {
		log.Fatal(err)
	}
}
