package record

import (
	"time"

	"wpptrace/query"
)

// leastElsewhere is how much CPU time hits have to leave for it to be known where it went.
const leastElsewhere = 50 * time.Millisecond

// isElsewhere reports whether most of some CPU time, more than none, went to other code than so
// many instructions: they hardly ever take so long.
func isElsewhere(own time.Duration, instructions uint64) bool {
	const slow = 10 * time.Nanosecond
	return own >= 2*slow*time.Duration(min(instructions, uint64(own)))
}

// WentElsewhere reports whether the process has spent most of its CPU time on external code, beyond
// doubt, and how many traced instructions ran. Cost: all grammars are gone through once, unless
// little time was used.
func (r *Result) WentElsewhere() (instructions uint64, elsewhere bool) {
	own := r.CPUTime - r.HitCost
	if own < leastElsewhere || own < r.CPUTime/2 { // before the grammars are gone through
		return 0, false
	}
	ran, err := query.CountInstructions(r.Snapshot)
	return ran, err == nil && isElsewhere(own, ran)
}
