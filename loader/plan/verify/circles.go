package verify

import (
	"slices"

	"wpptrace/loader/plan"
)

// A unprobedCall is a call, or a jump, that a routine may make before its first event.
type unprobedCall struct {
	from, to *routine
	block    int
}

// checkCircles: no circle of calls and tail jumps runs without an event (rule 3: no circles). A
// circle without an event of tail jumps is not even begun where an activation may end without one.
func (v *verifier) checkCircles() {
	unprobed := func(r *routine, b int) bool { return r.first[b] && r.sites[b] == nil }
	if circle := v.circle(unprobed); circle != nil {
		v.faultCircle("it can be entered again and again without an event", circle)
	}
	jumps := func(r *routine, b int) bool { return r.probeFree && !r.Blocks[b].IsCall() }
	if circle := v.circle(jumps); circle != nil {
		v.faultCircle("it may end without an event, and jumps can lead back to it", circle)
	}
}

// checkRows: a hit need not follow more callers that have made no event than it can, nor the
// decoder more tail jumps (rule 3: no circles).
func (v *verifier) checkRows() {
	v.checkRow("more callers in a row may have made no event than are followed",
		plan.MaxProbeFreeCallers, func(r *routine, b int) bool { return r.Blocks[b].IsCall() },
		v.jumpOn)
	v.checkRow("more tail jumps in a row may come without an event than are followed",
		plan.MaxProbeFreeJumps, func(r *routine, b int) bool { return !r.Blocks[b].IsCall() }, nil)
}

// A level is who may run behind so many edges without an event in a row, and what has entered it.
type level map[*routine]unprobedCall

// checkRow finds what may run behind too many edges of a kind in a row without an event. Behind
// each of them goOn adds what runs then.
func (v *verifier) checkRow(what string, most int, is func(r *routine, b int) bool,
	goOn func(level)) {
	last := level{}
	for _, r := range v.traced {
		last[r] = unprobedCall{}
	}
	levels := []level{last}
	for range most + 1 {
		if last = v.behind(last, is); goOn != nil {
			goOn(last)
		}
		if len(last) == 0 {
			return
		}
		levels = append(levels, last)
	}
	for _, r := range v.traced {
		c, ok := last[r]
		if !ok {
			continue
		}
		way := Way{r.Addr}
		for n := len(levels) - 1; n > 0; c = levels[n][c.from] {
			way = append(way, c.from.Blocks[c.block].Lo)
			if is(c.from, c.block) {
				n--
			}
		}
		slices.Reverse(way)
		r.fault(what, way)
		return
	}
}

// behind finds who may run right behind an edge of a kind, without an event, from those.
func (v *verifier) behind(from level, is func(r *routine, b int) bool) level {
	found := level{}
	for _, r := range v.traced {
		if _, ok := from[r]; !ok {
			continue
		}
		for b, to := range r.callees {
			if to != nil && r.kinds[b] == plan.Known && r.first[b] && r.sites[b] == nil && is(r,
				b) {
				found[to] = unprobedCall{r, to, b}
			}
		}
	}
	return found
}

// jumpOn adds what those jump to, and so on: they have made an event then or not.
func (v *verifier) jumpOn(found level) {
	var queue []*routine
	for _, r := range v.traced {
		if _, ok := found[r]; ok {
			queue = append(queue, r)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		r := queue[0]
		for b, to := range r.callees {
			if _, known := found[to]; to != nil && r.kinds[b] == plan.Known &&
				!r.Blocks[b].IsCall() && !known {
				found[to] = unprobedCall{r, to, b}
				queue = append(queue, to)
			}
		}
	}
}

func (v *verifier) faultCircle(what string, circle []unprobedCall) {
	var way Way
	for _, c := range circle {
		way = append(way, c.from.Blocks[c.block].Lo)
	}
	first := circle[0].from
	first.fault(what, append(way, first.Addr))
}

// circle finds a circle of the calls and jumps, of traced routines by traced routines, for
// which is holds.
func (v *verifier) circle(is func(r *routine, b int) bool) []unprobedCall {
	calls := make([][]unprobedCall, len(v.routines))
	degree := make([]int, len(v.routines)) // calls into each routine from those that are left
	for _, r := range v.traced {
		for b, to := range r.callees {
			if to != nil && r.kinds[b] == plan.Known && is(r, b) {
				calls[r.ID] = append(calls[r.ID], unprobedCall{r, to, b})
				degree[to.ID]++
			}
		}
	}
	var free []*routine
	for _, r := range v.traced {
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
func (v *verifier) follow(calls [][]unprobedCall, degree []int) []unprobedCall {
	callers := map[*routine]unprobedCall{}
	var at *routine
	for _, r := range v.traced {
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
	for range v.traced { // onto the circle
		at = callers[at].from
	}
	circle := []unprobedCall{callers[at]}
	for r := callers[at].from; r != at; r = callers[r].from {
		circle = append([]unprobedCall{callers[r]}, circle...)
	}
	return circle
}
