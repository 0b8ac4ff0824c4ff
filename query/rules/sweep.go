package rules

import (
	"slices"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
	"wpptrace/query/internal/stream"
)

// A sweep reads a grammar by an automaton, in one direction, without expanding it: what a rule does
// to a state, and how many hits are in it, is found out once (as Ganty and Valero do, arXiv
// 1901.05252, for whether there are any). So it takes time in proportion to the right-hand sides,
// times the states that their rules are met in (or all, where they are few: see fill), and constant
// memory for each rule and each of these. It belongs to one goroutine.
type sweep struct {
	grammar   *wpp.Grammar
	automaton *automaton
	backward  bool
	// not 0: effects of all rules on so many states, which are all there are, are known
	states   int
	all      []effect            // these, by rule and state
	pages    [][][]effect        // the others, by state, and by rule/pageRules
	many     map[visitKey]uint64 // hits where there are manyHits or more
	starts   stream.Ends         // nil: no position has been looked for yet
	segments map[int]int         // start rule of a segment -> the rule behind its last
	room     int                 // effects that may be kept
	stack    []visit
	err      error
}

// An effect is what reading a rule's expansion from a state does: the state that it ends in, plus
// 1, in the lower 16 bits, which suffice for mostStates; above, the hits, up to manyHits. 0: not
// known. It is small because looking it up is what a sweep spends its time on.
type effect uint64

const (
	manyHits = 1<<48 - 1
	exitBits = 16
)

type visitKey struct {
	rule  int
	state uint32
}

func (e effect) exit() uint32 { return uint32(e&(1<<exitBits-1)) - 1 }

// hits of an effect that is that of a rule on a state.
func (w *sweep) hitsOf(e effect, rule int, state uint32) uint64 {
	if n := uint64(e >> exitBits); n < manyHits {
		return n
	}
	return w.many[visitKey{rule, state}]
}

// keep keeps an effect.
func (w *sweep) keep(rule int, state uint32, hits uint64, exit uint32) effect {
	e := effect(min(hits, manyHits)<<exitBits | uint64(exit) + 1)
	*w.known(rule, state) = e
	if hits >= manyHits {
		w.many[visitKey{rule, state}] = hits
		w.room -= 8 // a map's entry is so much larger
	}
	return e
}

const pageRules = 512

// mostEffects bounds the memory of a sweep: to 128 MB.
const mostEffects = 1 << 24

// A visit is a rule that is being read.
type visit struct {
	body  []uint32
	rule  int
	entry uint32
	state uint32
	at    int // symbols read
	hits  uint64
}

func newSweep(g *wpp.Grammar, a *automaton, backward bool) *sweep {
	w := &sweep{grammar: g, automaton: a, backward: backward, room: mostEffects,
		many: make(map[visitKey]uint64)}
	if g.NumSegments() > 0 {
		w.segments = make(map[int]int)
		end := g.Rules()
		for _, sym := range slices.Backward(g.Body(0)) {
			w.segments[wpp.RuleOf(sym)], end = end, wpp.RuleOf(sym)
		}
	}
	return w
}

// forget makes room for other segments when one has been read: rules of it are met in no other.
func (w *sweep) forget(segment int) {
	end, ok := w.segments[segment]
	if !ok {
		return
	}
	for _, pages := range w.pages {
		for i := segment/pageRules + 1; i < end/pageRules && pages != nil; i++ {
			w.room += len(pages[i])
			pages[i] = nil
		}
	}
}

// known is the place of a rule's effect on a state.
func (w *sweep) known(rule int, state uint32) *effect {
	if w.states > 0 {
		return &w.all[rule*w.states+int(state)]
	}
	if int(state) < len(w.pages) && w.pages[state] != nil {
		if page := w.pages[state][rule/pageRules]; page != nil {
			return &page[rule%pageRules]
		}
	}
	return w.unknown(rule, state)
}

// unknown makes a place for what reading a rule from a state does.
func (w *sweep) unknown(rule int, state uint32) *effect {
	for int(state) >= len(w.pages) {
		w.pages = append(w.pages, nil)
	}
	rules := w.grammar.Rules()
	if w.pages[state] == nil {
		const effects = 3 // as much as a page's place takes
		if w.room -= effects * (rules/pageRules + 1); w.room < 0 {
			w.err = errTooComplex
			return new(effect)
		}
		w.pages[state] = make([][]effect, rules/pageRules+1)
	}
	page := make([]effect, min(pageRules, rules-rule/pageRules*pageRules))
	w.pages[state][rule/pageRules] = page
	if w.room -= len(page); w.room < 0 {
		w.err = errTooComplex
	}
	return &page[rule%pageRules]
}

// effect is what reading a rule from a state does. After an error it means nothing.
func (w *sweep) effect(rule int, state uint32) effect {
	if e := *w.known(rule, state); e != 0 {
		return e
	}
	base := len(w.stack)
	w.enter(rule, state)
	var e effect
	for len(w.stack) > base && w.err == nil {
		top := &w.stack[len(w.stack)-1]
		if w.read(top) {
			e = w.keep(top.rule, top.entry, top.hits, top.state)
			w.forget(top.rule)
			w.stack = w.stack[:len(w.stack)-1]
		}
	}
	w.stack = w.stack[:base]
	return e
}

func (w *sweep) enter(rule int, state uint32) {
	w.stack = append(w.stack, visit{body: w.grammar.Body(rule), rule: rule, entry: state,
		state: state})
}

// read reads on in a rule. It is over, and true, at the rule's end; or it enters a rule whose
// effect is not known.
func (w *sweep) read(v *visit) bool {
	state, hits, step, i := v.state, v.hits, 1, v.at
	if w.backward {
		step, i = -1, len(v.body)-1-v.at
	}
	for n := v.at; n < len(v.body); n, i = n+1, i+step {
		sym := v.body[i]
		if !wpp.IsRule(sym) {
			to, hit := w.automaton.next(state, sym)
			if hit {
				hits = saturating.Add(hits, 1)
			}
			state = to
			continue
		}
		e := *w.known(wpp.RuleOf(sym), state)
		if e == 0 {
			v.state, v.hits, v.at = state, hits, n
			w.enter(wpp.RuleOf(sym), state)
			return false
		}
		hits = saturating.Add(hits, w.hitsOf(e, wpp.RuleOf(sym), state))
		state = e.exit()
	}
	v.state, v.hits = state, hits
	if w.automaton.tooMany {
		w.err = errTooComplex
	}
	return true
}

// whole is what reading all does.
func (w *sweep) whole() (hits uint64, exit uint32, err error) {
	if n := w.automaton.states(mostStatesAtOnce); n > 0 && w.grammar.NumSegments() == 0 &&
		n*w.grammar.Rules() <= w.room {
		w.fill(n)
	}
	e := w.effect(0, w.automaton.start)
	return w.hitsOf(e, 0, w.automaton.start), e.exit(), w.err
}

// A hit is where an automaton hit: after so many symbols were read before.
type hit struct {
	distance uint64
	state    uint32 // before the symbol
}

// hits returns up to limit hits, of those from the symbol at a position on, the first skip left
// out. It takes time in proportion to the bodies on the way down to the first and to each, but for
// the start rule's, and to what of the grammar it is the first to read.
func (w *sweep) hits(from, skip uint64, limit int) ([]hit, error) {
	var found []hit
	state, read := w.automaton.start, uint64(0)
	way := w.descend(from)
	for len(way) > 0 && len(found) < limit && w.err == nil {
		top := &way[len(way)-1]
		body := w.grammar.Body(top.rule)
		if top.at < 0 || top.at >= len(body) {
			way = way[:len(way)-1]
			continue
		}
		sym := body[top.at]
		if w.backward {
			top.at--
		} else {
			top.at++
		}
		if wpp.IsRule(sym) {
			rule := wpp.RuleOf(sym)
			e := w.effect(rule, state)
			n := w.hitsOf(e, rule, state)
			if n > skip {
				way = append(way, w.atEdge(rule))
				continue
			}
			skip -= n
			state, read = e.exit(), saturating.Add(read, w.grammar.Length(rule))
			continue
		}
		to, isHit := w.automaton.next(state, sym)
		switch {
		case isHit && skip > 0:
			skip--
		case isHit:
			found = append(found, hit{read, state})
		}
		state, read = to, saturating.Add(read, 1)
	}
	if w.automaton.tooMany {
		w.err = errTooComplex
	}
	return found, w.err
}

// atEdge is where reading a rule begins.
func (w *sweep) atEdge(rule int) rung {
	if w.backward {
		return rung{rule, len(w.grammar.Body(rule)) - 1}
	}
	return rung{rule, 0}
}

// A rung is a symbol of a rule's body on the way from the start rule down to a terminal.
type rung struct{ rule, at int }

// descend finds the way down to the terminal at a position, for those who read on from there: of
// the rungs but the last, at is beside the symbol that leads down. Behind the end there is no way.
// It takes time in proportion to the bodies on it but the start rule's, of whose length it takes
// the logarithm.
func (w *sweep) descend(position uint64) []rung {
	if position >= w.grammar.Length(0) {
		return nil
	}
	if w.starts == nil {
		w.starts = stream.NewEnds(w.grammar)
	}
	at, position := w.starts.Find(position)
	way := []rung{{0, at}}
	for {
		top := &way[len(way)-1]
		sym := w.grammar.Body(top.rule)[top.at]
		width := stream.Width(w.grammar, sym)
		switch {
		case position >= width && width < 1<<64-1:
			position -= width
			top.at++
		case !wpp.IsRule(sym):
			return way
		default:
			if top.at++; w.backward {
				top.at -= 2
			}
			way = append(way, rung{wpp.RuleOf(sym), 0})
		}
	}
}
