package sequitur

import "testing"

// A plain is SEQUITUR as Nevill-Manning and Witten published it, with a map and pointers, digram by
// digram: what the package must derive the same stream as, and be faster than.
type plain struct {
	digrams map[[2]uint32]*plainSymbol
	rules   []*plainRule // by number; nil: it does not exist any more
}

type plainRule struct {
	guard  *plainSymbol
	number uint32
	uses   int
}

// A plainSymbol stands for a terminal, or names a rule; a guard closes the ring of the rule's body.
type plainSymbol struct {
	prev, next *plainSymbol
	value      uint32
	rule       *plainRule // that it names or guards
	guards     bool
}

func newPlain() *plain {
	p := &plain{digrams: map[[2]uint32]*plainSymbol{}}
	p.newRule()
	return p
}

func (p *plain) newRule() *plainRule {
	r := &plainRule{number: uint32(len(p.rules))}
	r.guard = &plainSymbol{value: guardBits | r.number, rule: r, guards: true}
	r.guard.prev, r.guard.next = r.guard, r.guard
	p.rules = append(p.rules, r)
	return r
}

func (r *plainRule) symbol() *plainSymbol {
	r.uses++
	return &plainSymbol{value: RuleSymbol(int(r.number)), rule: r}
}

func (p *plain) append(terminal uint32) {
	last := p.rules[start].guard.prev
	p.insertAfter(last, &plainSymbol{value: terminal})
	p.check(last)
}

func digramAt(s *plainSymbol) [2]uint32 { return [2]uint32{s.value, s.next.value} }

func (p *plain) join(left, right *plainSymbol) {
	if left.next != nil {
		p.forget(left)
		// in a run of three, the other digram is recorded instead
		if right.prev != nil && right.next != nil && right.value == right.prev.value &&
			right.value == right.next.value {
			p.digrams[digramAt(right)] = right
		}
		if left.prev != nil && left.value == left.next.value && left.value == left.prev.value {
			p.digrams[digramAt(left.prev)] = left.prev
		}
	}
	left.next, right.prev = right, left
}

func (p *plain) forget(s *plainSymbol) {
	if d := digramAt(s); !s.guards && !s.next.guards && p.digrams[d] == s {
		delete(p.digrams, d)
	}
}

func (p *plain) insertAfter(s, inserted *plainSymbol) {
	p.join(inserted, s.next)
	p.join(s, inserted)
}

func (p *plain) remove(s *plainSymbol) {
	p.join(s.prev, s.next)
	p.forget(s)
	if s.rule != nil {
		s.rule.uses--
	}
}

func (p *plain) check(s *plainSymbol) bool {
	if s.guards || s.next.guards {
		return false
	}
	found := p.digrams[digramAt(s)]
	if found == nil {
		p.digrams[digramAt(s)] = s
		return false
	}
	if found.next != s {
		p.match(s, found)
	}
	return true
}

func (p *plain) match(s, found *plainSymbol) {
	var r *plainRule
	if found.prev.guards && found.next.next.guards {
		r = found.prev.rule
		p.substitute(s, r)
	} else {
		r = p.newRule()
		for _, v := range []*plainSymbol{s, s.next} {
			copied := &plainSymbol{value: v.value}
			if v.rule != nil {
				copied = v.rule.symbol()
			}
			p.insertAfter(r.guard.prev, copied)
		}
		p.substitute(found, r)
		p.substitute(s, r)
		p.digrams[digramAt(r.guard.next)] = r.guard.next
	}
	if first := r.guard.next; first.rule != nil && first.rule.uses == 1 {
		p.inline(first)
	}
}

func (p *plain) substitute(s *plainSymbol, r *plainRule) {
	before := s.prev
	p.remove(before.next)
	p.remove(before.next)
	p.insertAfter(before, r.symbol())
	if !p.check(before) {
		p.check(before.next)
	}
}

func (p *plain) inline(s *plainSymbol) {
	left, right, r := s.prev, s.next, s.rule
	first, last := r.guard.next, r.guard.prev
	p.rules[r.number] = nil
	p.forget(s)
	p.join(left, first)
	p.join(last, right)
	if !last.guards && !right.guards {
		p.digrams[digramAt(last)] = last
	}
}

func (p *plain) symbols() (n int) {
	for _, r := range p.rules {
		if r == nil {
			continue
		}
		for s := r.guard.next; s != r.guard; s = s.next {
			n++
		}
	}
	return n
}

// Grammars are as small as the plain ones, taken together: rules are made in another order, which
// is better here and worse there.
func TestAsSmallAsPlain(t *testing.T) {
	ours, theirs := 0, 0
	for seed := range uint64(30) {
		stream := programStream(seed, 20_000)
		g, p := New(), newPlain()
		for _, v := range stream {
			g.Append(v)
			p.append(v)
		}
		if err := checkInvariants(g, stream); err != nil {
			t.Fatal(err)
		}
		ours, theirs = ours+g.Symbols(), theirs+p.symbols()
	}
	t.Logf("%d symbols, %d plainly", ours, theirs)
	if ours > theirs+theirs/50 {
		t.Errorf("%d symbols, %d plainly", ours, theirs)
	}
}
