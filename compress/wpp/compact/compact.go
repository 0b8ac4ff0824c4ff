package wpp

import (
	"fmt"
	"math/bits"
	"slices"

	"wpptrace/compress/coding"
	"wpptrace/compress/repair"
)

// compactSymbols is how many symbols are looked at together for repetitions: 50 bytes of memory
// each, and up to 140 where nothing repeats.
const compactSymbols = 1 << 24

// Compact returns a grammar that derives the same and takes fewer bytes in a snapshot, or g itself
// where it finds none. It is made for one time after a recording: it costs a second or two a
// million symbols of what the grammar derives, up to 16 million, of which it keeps some 50 to 140
// bytes each in memory. In what derives more, it looks for repetitions within rules. An error says
// that it came out wrong: g is as it was then. A grammar of segments, which are large, stays what
// it is.
func (g *Grammar) Compact() (*Grammar, error) {
	if g.segments != nil {
		return g, nil
	}
	return g.compact(compactSymbols)
}

// compact is Compact, looking at so many symbols together.
func (g *Grammar) compact(symbols uint64) (*Grammar, error) {
	compacted, err := NewGrammar(repair.Compact(g.unfolded(symbols)))
	if err != nil {
		return nil, fmt.Errorf("compact grammar: %w", err)
	}
	if compacted.fingerprint() != g.fingerprint() {
		return nil, fmt.Errorf("compact grammar: it would not derive the same %d symbols", g.Length(0))
	}
	if len(coding.Encode(compacted.bodies)) >= len(coding.Encode(g.bodies)) {
		return g, nil
	}
	return compacted, nil
}

// unfolded returns bodies of fewer rules, in which those that are not kept are expanded: the
// shorter ones, as many as make no more than most symbols, or none.
func (g *Grammar) unfolded(most uint64) [][]uint32 {
	log := 63
	for log > 0 && g.unfoldedSymbols(1<<log) > most {
		log--
	}
	kept := uint64(1) << log
	numbers := make([]int, len(g.bodies))
	var rules []int
	for r := range g.bodies {
		if r == 0 || g.lengths[r] >= kept {
			numbers[r] = len(rules)
			rules = append(rules, r)
		}
	}
	bodies := make([][]uint32, len(rules))
	for i, r := range rules {
		for _, v := range g.bodies[r] {
			switch {
			case !IsRule(v):
				bodies[i] = append(bodies[i], v)
			case g.lengths[RuleOf(v)] >= kept:
				bodies[i] = append(bodies[i], RuleSymbol(numbers[RuleOf(v)]))
			default:
				for t := range g.Expand(RuleOf(v)) {
					bodies[i] = append(bodies[i], t)
				}
			}
		}
	}
	return bodies
}

// unfoldedSymbols returns how many symbols the bodies have when only the start rule and those that
// derive so many symbols are kept.
func (g *Grammar) unfoldedSymbols(kept uint64) uint64 {
	n := uint64(0)
	for r, body := range g.bodies {
		if r > 0 && g.lengths[r] < kept {
			continue
		}
		for _, v := range body {
			if IsRule(v) && g.lengths[RuleOf(v)] < kept {
				n = addSaturating(n, g.lengths[RuleOf(v)])
			} else {
				n = addSaturating(n, 1)
			}
		}
	}
	return n
}

// fingerprint is a number of what the grammar derives, whatever its rules: the stream as a
// polynomial, whose value is computed rule by rule.
func (g *Grammar) fingerprint() uint64 {
	const prime, base = 1<<61 - 1, 0x1b873593_cc9e2d51
	times := func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return (lo&prime + (hi<<3 | lo>>61)) % prime
	}
	type text struct{ value, power uint64 } // power: the base to the length
	of := make([]text, len(g.bodies))
	for _, r := range slices.Backward(g.order) {
		whole := text{0, 1}
		for _, v := range g.bodies[r] {
			part := text{uint64(v) + 1, base}
			if IsRule(v) {
				part = of[RuleOf(v)]
			}
			whole.value = (times(whole.value, part.power) + part.value) % prime
			whole.power = times(whole.power, part.power)
		}
		of[r] = whole
	}
	return of[0].value
}
