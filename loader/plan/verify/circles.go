package verify

import (
	"slices"

	"wpptrace/loader/plan"
)

// A silentCall is a call, or a jump, that a routine may make before its first word.
type silentCall struct {
	from, to *routine
	block    int
}

// checkCircles: no circle of calls and tail jumps runs without a word (rule 3). A silent circle of
// tail jumps is not even begun where no end may be silent.
func (v *verifier) checkCircles() {
	unspoken := func(r *routine, b int) bool { return r.first[b] && r.sites[b] == nil }
	if circle := v.circle(unspoken); circle != nil {
		v.faultCircle("it can be entered again and again without a word", circle)
	}
	jumps := func(r *routine, b int) bool { return r.silent && !isCall(&r.Blocks[b]) }
	if circle := v.circle(jumps); circle != nil {
		v.faultCircle("it may be silent, and jumps can lead back to it", circle)
	}
}

// checkChains: a hit need not follow more callers that have made no word than it can (rule 3).
func (v *verifier) checkChains() {
	from := make([]silentCall, len(v.routines)) // by routine that may run below so many such callers: what has entered it
	for _, r := range v.observed {
		from[r.ID].from = r
	}
	levels := [][]silentCall{from}
	for n := range plan.MaxSilentCallers + 1 {
		next, any := v.below(levels[n])
		if !any {
			return
		}
		levels = append(levels, next)
	}
	for _, r := range v.observed {
		c := levels[len(levels)-1][r.ID]
		if c.from == nil {
			continue
		}
		way := Way{r.Addr}
		for n := len(levels) - 1; n > 0; c = levels[n][c.from.ID] {
			way = append(way, c.from.Blocks[c.block].Lo)
			if isCall(&c.from.Blocks[c.block]) {
				n--
			}
		}
		slices.Reverse(way)
		r.fault("more callers in a row may have made no word than are followed", way)
		return
	}
}

// below finds who may run right below a silent caller that is one of those, and what enters it.
func (v *verifier) below(callers []silentCall) (found []silentCall, any bool) {
	found = make([]silentCall, len(v.routines))
	var queue []*routine
	enter := func(r *routine, b int) {
		if to := r.callees[b]; to != nil && r.kinds[b] == plan.Known && found[to.ID].from == nil {
			found[to.ID] = silentCall{r, to, b}
			queue = append(queue, to)
		}
	}
	for _, r := range v.observed {
		for b := range r.callees {
			if callers[r.ID].from != nil && isCall(&r.Blocks[b]) && r.first[b] && r.sites[b] == nil {
				enter(r, b)
			}
		}
	}
	for any = len(queue) > 0; len(queue) > 0; queue = queue[1:] {
		for b := range queue[0].callees {
			if !isCall(&queue[0].Blocks[b]) {
				enter(queue[0], b)
			}
		}
	}
	return found, any
}

func (v *verifier) faultCircle(what string, circle []silentCall) {
	var way Way
	for _, c := range circle {
		way = append(way, c.from.Blocks[c.block].Lo)
	}
	first := circle[0].from
	first.fault(what, append(way, first.Addr))
}

// circle finds a circle of the calls and jumps, of observed routines by observed routines, for
// which is holds.
func (v *verifier) circle(is func(r *routine, b int) bool) []silentCall {
	calls := make([][]silentCall, len(v.routines))
	degree := make([]int, len(v.routines)) // calls into each routine from those that are left
	for _, r := range v.observed {
		for b, to := range r.callees {
			if to != nil && r.kinds[b] == plan.Known && is(r, b) {
				calls[r.ID] = append(calls[r.ID], silentCall{r, to, b})
				degree[to.ID]++
			}
		}
	}
	var free []*routine
	for _, r := range v.observed {
		if degree[r.ID] == 0 {
			free = append(free, r)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, c := range calls[free[0].ID] {
			if degree[c.to.ID]--; degree[c.to.ID] == 0 {
				free = append(free, c.to)
			}
		}
	}
	return v.follow(calls, degree)
}

// follow goes back and forth no more: of what is left each routine is called by another that is
// left, and going from caller to caller closes a circle.
func (v *verifier) follow(calls [][]silentCall, degree []int) []silentCall {
	callers := map[*routine]silentCall{}
	var at *routine
	for _, r := range v.observed {
		if degree[r.ID] == 0 {
			continue
		}
		at = r
		for _, c := range calls[r.ID] {
			if degree[c.to.ID] > 0 {
				callers[c.to] = c
			}
		}
	}
	if at == nil {
		return nil
	}
	for range v.observed { // onto the circle
		at = callers[at].from
	}
	circle := []silentCall{callers[at]}
	for r := callers[at].from; r != at; r = callers[r].from {
		circle = append([]silentCall{callers[r]}, circle...)
	}
	return circle
}
