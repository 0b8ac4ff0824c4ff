package overhead

import "time"

// A budget is an account of CPU time: the process's own earns a share, what the probes take is paid
// from it. It may be overdrawn, since probes cost more or less than one can know before: then
// nothing is to be spent until the debt has been earned, so that in the long run the budget holds
// whatever the process does. It is used by one goroutine at a time; each call costs a few ns.
type budget struct {
	share  float64
	credit float64 // ns; negative: debt
	total  use
}

// A use is what a process used in some time, CPU time of all its threads: Own is what it would have
// used without probes, Probes what they took. Own may be below 0, where it was taken for more
// before.
type use struct {
	Own, Probes time.Duration
}

const (
	// of its own CPU time: what a process that was idle does first need not be missed
	advance   = 100 * time.Millisecond
	mostSaved = time.Second // a calm hour must not be paid back with a bad minute
)

// newBudget returns a budget of that share: 0.05 is 5 % of the process's own CPU time. It begins
// with what a tenth of a second of that earns.
func newBudget(share float64) *budget {
	return &budget{share: share, credit: share * float64(advance)}
}

// account takes account of what was used since the last call.
func (b *budget) account(u use) {
	b.total.Own += u.Own
	b.total.Probes += u.Probes
	b.credit = min(b.credit+b.share*float64(u.Own)-float64(u.Probes), b.share*float64(mostSaved))
}

// owe takes from the budget what probes have taken of others.
func (b *budget) owe(others time.Duration) { b.credit -= float64(others) }

// debt is how much CPU time of its own the process needs before the account is overdrawn no more.
func (b *budget) debt() time.Duration { return time.Duration(max(0, -b.credit/b.share)) }

// overdrawn reports whether more was spent than earned.
func (b *budget) overdrawn() bool { return b.credit < 0 }

// overhead is what the probes have taken so far, as a share of the process's own CPU time, which is
// known to be at least so much, and is taken to be a microsecond or more.
func (b *budget) overhead(least time.Duration) float64 {
	own := max(b.total.Own, least, time.Microsecond)
	return float64(max(b.total.Own+b.total.Probes-own, 0)) / float64(own)
}
