package forest

import "wpptrace/compress/wpp"

// A Rule is a rule of a forest as Upwards reads it, with what was found out of those that it uses.
// It is good until the next one is read.
type Rule[T any] struct {
	Body    []uint32 // terminals and rules, as in a wpp.Grammar; read-only
	Derived uint64   // how often it is derived, in all threads together
	IsTop   bool     // no rule uses it: what is found out of it is not asked for

	length uint64 // of its expansion
	below  *below[T]
}

// Take is what was found out of the rule that a symbol of Body stands for. It is asked for once for
// each time that the rule is used: the last one lets go of it.
func (r *Rule[T]) Take(v uint32) T {
	b, rule := r.below, wpp.RuleOf(v)
	found := b.found[rule]
	if b.unread[rule]--; b.unread[rule] == 0 {
		var none T
		b.found[rule] = none
	}
	return found
}

// width is how many terminals a symbol of Body expands to.
func (r *Rule[T]) width(v uint32) uint64 { return r.below.piece.width(v) }

// Below is what was found out of the rules of a piece.
type below[T any] struct {
	piece  *piece
	found  []T
	unread []int // rule -> uses of what was found yet to come
}

// Upwards reads each rule of a forest once, after all that it uses, and keeps what read finds out
// of it for those that use it. It takes time linear in the right-hand sides, read's own apart, and
// the memory of what is found out of one piece, but what its last use has taken.
func Upwards[T any](f *Forest, read func(r *Rule[T]) T) {
	var segments []T // of their start rules
	for p := range f.pieces() {
		b := &below[T]{piece: p, found: make([]T, len(p.begin)), unread: make([]int, len(p.begin))}
		if p.joins {
			for i, found := range segments {
				b.found[i+1], b.unread[i+1] = found, 1
			}
			segments = nil
		}
		r := &Rule[T]{below: b}
		for _, rule := range p.upwards {
			r.Body, r.Derived, r.length = p.rightSide(rule), p.derived[rule], p.length[rule]
			r.IsTop = p.used[rule] == 0 && !p.isSegment
			if found := read(r); !r.IsTop {
				b.found[rule], b.unread[rule] = found, int(p.used[rule])
			}
		}
		if p.isSegment {
			segments = append(segments, b.found[0])
		}
	}
}
