package coverage

import (
	"time"

	"wpptrace/internal/remedy"
	"wpptrace/loader/firsthit"
)

// mostForking is what forks of a process may take longer for the probes that stand, as a share of
// its time. One that does nothing but fork, as some shell scripts do, would be slowed down several
// times.
const mostForking = 0.05

// forking knows what forks take longer.
type forking struct {
	at     time.Time
	copies uint64
}

// check fails where the process forks too often for so many probes.
func (f *forking) check(x *observation) error {
	const often = 500 * time.Millisecond
	now := time.Now()
	if now.Sub(f.at) < often {
		return nil
	}
	n, err := x.session.Copies()
	if err != nil {
		return err
	}
	before := *f
	f.at, f.copies = now, n
	if before.at.IsZero() {
		return nil
	}
	standing := x.watch.standing()
	if x.paths != nil {
		standing += x.paths.watch.Probes
	}
	each := time.Duration(standing) * firsthit.PerFork
	forks := float64(n-before.copies) / now.Sub(before.at).Seconds()
	if forks*each.Seconds() <= mostForking {
		return nil
	}
	return remedy.Errorf(remedy.FewerRoutines, "process %d (%s) forks %.0f times a second, and each "+
		"takes %v longer while %d probes stand", x.process.PID, x.process.Name, forks,
		each.Round(10*time.Microsecond), standing)
}
