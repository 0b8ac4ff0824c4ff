package rules

import (
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// mostStatesAtOnce is how many states all rules are read from at once, whether or not they are met
// in them: what one state leads to need not be waited for before the next is looked at, which makes
// up for that.
const mostStatesAtOnce = 16

// states finds out all steps of an automaton, and returns how many states it has, or 0 where that
// is more than most.
func (x *automaton) states(most int) int {
	n := int(x.start) + 1
	for state := 0; state < n; state++ {
		for class := range x.mask {
			to, _ := x.after(uint32(state), uint32(class))
			if n = max(n, int(to)+1); n > most {
				return 0
			}
		}
	}
	return n
}

// fill finds the effects of all rules on an automaton's states.
func (w *sweep) fill(states int) {
	w.all = make([]effect, states*w.grammar.Rules())
	w.states = states
	w.room -= len(w.all)
	var state [mostStatesAtOnce]uint32
	var hits [mostStatesAtOnce]uint64
	order := w.grammar.Order()
	for i := len(order) - 1; i >= 0; i-- {
		for s := range states {
			state[s], hits[s] = uint32(s), 0
		}
		w.readAll(w.grammar.Body(order[i]), state[:states], hits[:states])
		for s := range states {
			w.keep(order[i], uint32(s), hits[s], state[s])
		}
	}
}

// readAll reads a body from all states at once.
func (w *sweep) readAll(body []uint32, state []uint32, hits []uint64) {
	hits = hits[:len(state)]
	classes := len(w.automaton.mask)
	for i := range body {
		sym := body[i]
		if w.backward {
			sym = body[len(body)-1-i]
		}
		if !wpp.IsRule(sym) {
			class := int(w.automaton.class[sym])
			for s, from := range state {
				v := w.automaton.table[int(from)*classes+class] - 1
				state[s] = v >> 1
				hits[s] = saturating.Add(hits[s], uint64(v&1))
			}
			continue
		}
		rule := wpp.RuleOf(sym)
		effects := w.all[rule*w.states:][:w.states]
		for s, from := range state {
			e := effects[from]
			state[s] = e.exit()
			if n := uint64(e >> exitBits); n > 0 {
				hits[s] = saturating.Add(hits[s], w.hitsOf(e, rule, from))
			}
		}
	}
}
