package sequitur

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// checkInvariants walks a grammar and reports the first thing that is not as the package promises:
// what it derives, digram uniqueness, rule utility, the digram table, and the counts.
func checkInvariants(g *Grammar, stream []uint32) error {
	g = clone(g)
	g.flush()
	if err := checkRings(g); err != nil {
		return err
	}
	if got := derive(g); !equalStreams(got, stream) {
		return fmt.Errorf("derives %v, appended %v", got, stream)
	}
	return errors.Join(checkDigrams(g), checkUses(g))
}

func checkRings(g *Grammar) error {
	live := 0
	for r, rule := range g.built.rules {
		if rule.guard == 0 {
			continue
		}
		live++
		if v := g.built.at(rule.guard).value; v != guardBits|uint32(r) {
			return fmt.Errorf("guard of rule %d has value %#x", r, v)
		}
		for n := g.built.at(rule.guard).next; ; n = g.built.at(n).next {
			if g.built.at(g.built.at(n).prev).next != n {
				return fmt.Errorf("rule %d: node %d is linked from one side only", r, n)
			}
			if n == rule.guard {
				break
			}
			if isGuard(g.built.at(n).value) {
				return fmt.Errorf("rule %d holds a guard or a free node", r)
			}
			live++
		}
	}
	if live != g.built.live {
		return fmt.Errorf("%d live nodes counted, %d found", g.built.live, live)
	}
	return nil
}

func derive(g *Grammar) []uint32 {
	var stream []uint32
	stack := []uint32{g.built.at(g.built.rules[start].guard).next}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		v := g.built.at(n).value
		if isGuard(v) {
			stack = stack[:len(stack)-1]
			continue
		}
		stack[len(stack)-1] = g.built.at(n).next
		if isNonterminal(v) {
			stack = append(stack, g.built.at(g.built.rules[v&ruleMask].guard).next)
		} else {
			stream = append(stream, v)
		}
	}
	return stream
}

func equalStreams(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// checkDigrams counts the non-overlapping occurrences of each digram with a map and compares the
// record with it.
func checkDigrams(g *Grammar) error {
	occurrences := map[[2]uint32][]uint32{}
	for r, rule := range g.built.rules {
		if rule.guard == 0 {
			continue
		}
		previous := [2]uint32{freeValue, freeValue}
		overlaps := false
		for n := g.built.at(rule.guard).next; n != rule.guard; n = g.built.at(n).next {
			right := g.built.at(n).next
			if right == rule.guard {
				break
			}
			digram := [2]uint32{g.built.at(n).value, g.built.at(right).value}
			overlaps = digram == previous && digram[0] == digram[1] && !overlaps
			previous = digram
			if !overlaps && len(occurrences[digram]) > 0 {
				return fmt.Errorf("digram %#x occurs twice, again in rule %d", digram, r)
			}
			occurrences[digram] = append(occurrences[digram], n)
		}
	}
	for digram, nodes := range occurrences {
		if m := g.built.find(digram[0], digram[1]); m != nodes[0] &&
			(len(nodes) == 1 || m != nodes[1]) {
			return fmt.Errorf("digram %#x at nodes %v is recorded at %d", digram, nodes, m)
		}
	}
	recorded := int(g.built.digrams.used)
	if g.built.pending != 0 {
		recorded++
	}
	if recorded != len(occurrences) {
		return fmt.Errorf("%d digrams are recorded, %d exist", recorded, len(occurrences))
	}
	return nil
}

func checkUses(g *Grammar) error {
	uses := make([]uint32, len(g.built.rules))
	for _, rule := range g.built.rules {
		if rule.guard == 0 {
			continue
		}
		for n := g.built.at(rule.guard).next; n != rule.guard; n = g.built.at(n).next {
			if v := g.built.at(n).value; isNonterminal(v) {
				uses[v&ruleMask]++
			}
		}
	}
	for r, rule := range g.built.rules {
		if rule.guard == 0 {
			continue
		}
		if uses[r] != rule.uses {
			return fmt.Errorf("rule %d: %d uses counted, %d found", r, rule.uses, uses[r])
		}
		if r != start && uses[r] < 2 {
			return fmt.Errorf("rule %d is used %d times", r, uses[r])
		}
	}
	return nil
}

// clone copies a grammar, so that it can be checked as if appending ended.
func clone(g *Grammar) *Grammar {
	c := *g
	c.built.nodes = resize(allocate[node](0), len(g.built.nodes))
	copy(c.built.nodes, g.built.nodes)
	c.built.rules = slices.Clone(g.built.rules)
	c.built.freeRules = slices.Clone(g.built.freeRules)
	c.built.suspects = slices.Clone(g.built.suspects)
	c.queue = append(make([]uint32, 0, queueSize), g.queue...)
	c.built.digrams.slots = allocate[uint64](len(g.built.digrams.slots))
	copy(c.built.digrams.slots, g.built.digrams.slots)
	c.built.following.levels = slices.Clone(g.built.following.levels)
	if g.runs != nil {
		c.runs = &runs{last: g.runs.last, slots: slices.Clone(g.runs.slots),
			all: slices.Clone(g.runs.all)}
	}
	runtime.SetFinalizer(&c, (*Grammar).Release)
	return &c
}
