package compact

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"wpptrace/compress/coding"
	"wpptrace/compress/repair"
	"wpptrace/compress/wpp"
)

// mostSymbols is how many symbols are looked at together for repetitions: 50 bytes of memory each,
// and up to 140 where nothing repeats.
const mostSymbols = 1 << 24

// Grammar returns a grammar that derives the same as g and takes fewer bytes in a snapshot, or g
// itself where it finds none. It is made for one time after a recording: it costs a second or two a
// million symbols of what the grammar derives, up to 16 million, of which it keeps some 50 to 140
// bytes each in memory. In what derives more, it looks for repetitions within rules. An error says
// that it came out wrong: g is as it was then. A grammar of segments, which are large, stays what
// it is.
func Grammar(g *wpp.Grammar) (*wpp.Grammar, error) {
	if g.NumSegments() > 0 {
		return g, nil
	}
	return compact(g, mostSymbols)
}

// compact is Grammar, looking at so many symbols together.
func compact(g *wpp.Grammar, symbols uint64) (*wpp.Grammar, error) {
	compacted, err := wpp.NewGrammar(repair.Compact(unfolded(g, symbols)))
	if err != nil {
		return nil, fmt.Errorf("compact grammar: %w", err)
	}
	if fingerprint(compacted) != fingerprint(g) {
		return nil, fmt.Errorf("compact grammar: it would not derive the same %d symbols",
			g.Length(0))
	}
	if len(coding.Encode(compacted.Bodies())) >= len(coding.Encode(g.Bodies())) {
		return g, nil
	}
	return compacted, nil
}

// unfolded returns bodies of fewer rules, in which those that are not kept are expanded: the
// shorter ones, as many as make no more than most symbols, or none.
func unfolded(g *wpp.Grammar, most uint64) [][]uint32 {
	log := 63
	for log > 0 && unfoldedSymbols(g, 1<<log) > most {
		log--
	}
	kept := uint64(1) << log
	numbers := make([]int, g.Rules())
	var rules []int
	for r := range g.Bodies() {
		if r == 0 || g.Length(r) >= kept {
			numbers[r] = len(rules)
			rules = append(rules, r)
		}
	}
	bodies := make([][]uint32, len(rules))
	for i, r := range rules {
		for _, v := range g.Body(r) {
			switch {
			case !wpp.IsRule(v):
				bodies[i] = append(bodies[i], v)
			case g.Length(wpp.RuleOf(v)) >= kept:
				bodies[i] = append(bodies[i], wpp.RuleSymbol(numbers[wpp.RuleOf(v)]))
			default:
				for t := range g.Expand(wpp.RuleOf(v)) {
					bodies[i] = append(bodies[i], t)
				}
			}
		}
	}
	return bodies
}

// unfoldedSymbols returns how many symbols the bodies have when only the start rule and those that
// derive so many symbols are kept.
func unfoldedSymbols(g *wpp.Grammar, kept uint64) uint64 {
	n := uint64(0)
	for r, body := range g.Bodies() {
		if r > 0 && g.Length(r) < kept {
			continue
		}
		for _, v := range body {
			if wpp.IsRule(v) && g.Length(wpp.RuleOf(v)) < kept {
				n += min(g.Length(wpp.RuleOf(v)), math.MaxUint64-n)
			} else {
				n += min(1, math.MaxUint64-n)
			}
		}
	}
	return n
}

// fingerprint is a number of what the grammar derives, whatever its rules: the stream as a
// polynomial, whose value is computed rule by rule.
func fingerprint(g *wpp.Grammar) uint64 {
	const prime, base = 1<<61 - 1, 0x1b873593_cc9e2d51
	times := func(a, b uint64) uint64 {
		hi, lo := bits.Mul64(a, b)
		return (lo&prime + (hi<<3 | lo>>61)) % prime
	}
	type text struct{ value, power uint64 } // power: the base to the length
	of := make([]text, g.Rules())
	for _, r := range slices.Backward(g.Order()) {
		whole := text{0, 1}
		for _, v := range g.Body(r) {
			part := text{uint64(v) + 1, base}
			if wpp.IsRule(v) {
				part = of[wpp.RuleOf(v)]
			}
			whole.value = (times(whole.value, part.power) + part.value) % prime
			whole.power = times(whole.power, part.power)
		}
		of[r] = whole
	}
	return of[0].value
}
