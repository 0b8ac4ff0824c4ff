package overhead

import "time"

// Payers are those that a process has forked and that pay for the window that is open: they have
// copies of its probes. What they use meanwhile the budget is charged with, for it is not known how
// much of that their hits take. One goroutine uses them at a time; the zero value are all there
// are.
type Payers struct {
	free map[int]bool          // that have no copies
	used map[int]time.Duration // by the others, in all, when they were looked at last
}

// Exempt notes that those have no copies, and all others have; now is what each has used.
func (p *Payers) Exempt(now map[int]time.Duration) {
	p.free, p.used = map[int]bool{}, nil
	for pid := range now {
		p.free[pid] = true
	}
}

// More is what those who pay have used since the last time, of one that is new all it has; now is
// what each has used, of all.
func (p *Payers) More(now map[int]time.Duration) (more time.Duration) {
	before := p.used
	p.used = map[int]time.Duration{}
	for pid, used := range now {
		if !p.free[pid] {
			more += max(used-before[pid], 0)
			p.used[pid] = used
		}
	}
	return more
}
