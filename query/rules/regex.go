package rules

import (
	"fmt"
	"slices"
)

// A positions automaton is the one of Glushkov: a state but the first for each path that a pattern
// names, and no empty steps.
type positions struct {
	path   []*pattern // position -> what it reads; nil for 0, where reading begins
	follow []bitset   // position -> what may be read next
	last   bitset     // positions where the pattern may end
	covers []bitset   // position -> positions that lead nowhere that it does not lead itself
	built  int        // parts of the pattern, repetitions spelt out
}

// mostPositions bounds the size of a pattern.
const mostPositions = 512

// A fragment is part of a pattern: where it may begin and end, and whether it may be empty.
type fragment struct {
	first, last bitset
	empty       bool
}

// newPositions makes the automaton of a pattern. It takes time in proportion to the cube of the
// pattern's size, of which mostPositions is the greatest.
func newPositions(p *pattern) (*positions, error) {
	x := &positions{path: []*pattern{nil}, follow: []bitset{newBitset()}}
	whole, err := x.build(p)
	if err != nil {
		return nil, err
	}
	x.follow[0] = whole.first
	x.last = whole.last
	if whole.empty {
		x.last.set(0)
	}
	for i := range x.path {
		covered := newBitset()
		for j := 1; j < len(x.path); j++ {
			if x.leadsOn(i, j) && (i < j || !x.leadsOn(j, i)) {
				covered.set(j)
			}
		}
		x.covers = append(x.covers, covered)
	}
	return x, nil
}

// leadsOn reports whether position i leads everywhere that another, j, does.
func (x *positions) leadsOn(i, j int) bool {
	return i != j && x.follow[i].contains(x.follow[j]) && (x.last.has(i) || !x.last.has(j))
}

func (x *positions) build(p *pattern) (fragment, error) {
	if x.built++; x.built > 8*mostPositions || len(x.path) > mostPositions {
		return fragment{}, fmt.Errorf("more than %d paths, repetitions spelt out", mostPositions)
	}
	switch p.op {
	case onePath:
		return x.buildPath(p), nil
	case choice:
		return x.buildChoice(p)
	case sequence:
		whole := fragment{newBitset(), newBitset(), true}
		for _, part := range p.of {
			f, err := x.build(part)
			if err != nil {
				return f, err
			}
			whole = x.join(whole, f)
		}
		return whole, nil
	default:
		return x.buildRepetition(p)
	}
}

func (x *positions) buildPath(p *pattern) fragment {
	x.path = append(x.path, p)
	x.follow = append(x.follow, newBitset())
	one := newBitset()
	one.set(len(x.path) - 1)
	return fragment{one, slices.Clone(one), false}
}

func (x *positions) buildChoice(p *pattern) (fragment, error) {
	whole := fragment{newBitset(), newBitset(), false}
	for _, part := range p.of {
		f, err := x.build(part)
		if err != nil {
			return f, err
		}
		whole.first.add(f.first)
		whole.last.add(f.last)
		whole.empty = whole.empty || f.empty
	}
	return whole, nil
}

// join puts b behind a.
func (x *positions) join(a, b fragment) fragment {
	for i := range a.last.all() {
		x.follow[i].add(b.first)
	}
	whole := fragment{slices.Clone(a.first), slices.Clone(b.last), a.empty && b.empty}
	if a.empty {
		whole.first.add(b.first)
	}
	if b.empty {
		whole.last.add(a.last)
	}
	return whole
}

// buildRepetition spells out what is bounded: x{2,4} is x x (x (x)?)?.
func (x *positions) buildRepetition(p *pattern) (fragment, error) {
	whole := fragment{newBitset(), newBitset(), true}
	for range p.least {
		f, err := x.build(p.of[0])
		if err != nil {
			return f, err
		}
		whole = x.join(whole, f)
	}
	if p.most == unbounded {
		f, err := x.build(p.of[0])
		if err != nil {
			return f, err
		}
		for i := range f.last.all() {
			x.follow[i].add(f.first)
		}
		f.empty = true
		return x.join(whole, f), nil
	}
	for range p.most - p.least {
		f, err := x.build(p.of[0])
		if err != nil {
			return f, err
		}
		f.empty = true
		whole = x.join(whole, f)
	}
	return whole, nil
}

// reversed is the automaton of the pattern read from its end.
func (p *pattern) reversed() *pattern {
	r := *p
	r.of = nil
	for _, part := range p.of {
		r.of = append(r.of, part.reversed())
	}
	if r.op == sequence {
		slices.Reverse(r.of)
	}
	return &r
}
