package query

import (
	"math/bits"

	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A GrowthPoint says how much of a thread's grammar the first symbols of its stream use: the rules
// met so far, and the symbols on their right-hand sides, of the start rule's those met. A recording
// keeps only its last grammar: how large it was when the trace was that long is not known, but it
// was about so.
type GrowthPoint struct {
	Position uint64 // how many symbols
	Rules    int    // the start rule too
	Symbols  int
}

// Growth computes points at even distances, the last at the end of the stream; fewer where the
// stream is short. It takes time linear in the grammar and the points.
func Growth(g *wpp.Grammar, points int) (list []GrowthPoint, err error) {
	defer wpp.Recover(&err)
	length := g.Length(0)
	n := uint64(points)
	if length < n {
		n = length
	}
	now := GrowthPoint{Rules: 1}
	advance := func(width uint64) {
		now.Position = saturating.Add(now.Position, width)
		for uint64(len(list)) < n {
			hi, lo := bits.Mul64(length, uint64(len(list))+1)
			due, _ := bits.Div64(hi, lo, n)
			if due > now.Position {
				return
			}
			list = append(list, GrowthPoint{due, now.Rules, now.Symbols})
		}
	}
	// of a rule on the way down, and of the symbol that is next in it
	type place struct{ rule, at int }
	// of the rules up to the highest that has been: how many a file declares is not believed
	var met []bool
	way := []place{{}}
	for len(way) > 0 {
		top := &way[len(way)-1]
		body := g.Body(top.rule)
		if top.at == len(body) {
			way = way[:len(way)-1]
			continue
		}
		sym := body[top.at]
		if top.at++; top.rule == 0 {
			now.Symbols++
		}
		switch {
		case !wpp.IsRule(sym):
			advance(1)
		case wpp.RuleOf(sym) < len(met) && met[wpp.RuleOf(sym)]:
			advance(g.Length(wpp.RuleOf(sym)))
		default:
			rule := wpp.RuleOf(sym)
			now.Rules++
			now.Symbols += len(g.Body(rule))
			met = append(met, make([]bool, max(0, rule+1-len(met)))...)
			met[rule] = true
			way = append(way, place{rule, 0})
		}
	}
	return list, nil
}

// A HotCount is how many minimal hot subpaths of ten paths or more there are, up to a length and at
// a cost or more.
type HotCount struct {
	MinCost   uint64
	MaxLength int
	Subpaths  int
}

// HotByLength counts minimal hot subpaths by the greatest length and the least cost, which are
// those of figure 9 of Larus 1999: up to 10, 20 and so on to 100 paths, 10,000 and 100,000
// instructions, or paths where no instructions are known. Whether a subpath is minimal depends on
// what it begins with alone, so that one search a cost finds those of all lengths: see Hot for its
// time.
func HotByLength(s *wpp.Snapshot) (list []HotCount, err error) {
	defer wpp.Recover(&err)
	const shortest, longest = 10, 100
	threads, err := Threads(s, nil)
	if err != nil {
		return nil, err
	}
	f := newForest(s, threads)
	for _, cost := range []uint64{10_000, 100_000} {
		q := (HotQuery{MinLength: shortest, MaxLength: longest, MinCost: cost}).completed(s)
		r, err := findHot(f, costsOf(s, q), q)
		if err != nil {
			return nil, err
		}
		var found [longest + 1]int
		for _, p := range r.Subpaths {
			found[len(p.Symbols)]++
		}
		sum := 0
		for length := range found {
			if sum += found[length]; length > 0 && length%10 == 0 {
				list = append(list, HotCount{cost, length, sum})
			}
		}
	}
	return list, nil
}
