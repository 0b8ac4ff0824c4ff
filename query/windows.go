package query

import (
	"errors"
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/compress/wpp/windows"
	"wpptrace/query/cluster"
	"wpptrace/query/internal/forest"
)

const (
	// mostClusters is into how many clusters the windows of a recording are put. Where there are
	// more windows, some in a row are one: a cluster may be of any size.
	mostClusters = 256
	// mostStretched is how many symbols may be copied for that.
	mostStretched = 1 << 22
)

// A clustered snapshot is one that was cut where windows end.
type clustered struct {
	windows  int
	clusters []*forest.Forest
}

// clusterOf cuts what a snapshot's threads ran into windows. It fails where it is not known what
// ran in which window. It takes time and memory in proportion to the right-hand sides of the rules
// that each cluster has.
func clusterOf(s *wpp.Snapshot) (*clustered, error) {
	if profile, err := pathprofile.Of(s); err != nil || profile != nil {
		c := clusterCounts(profile, len(s.Symbols))
		if err == nil && c == nil {
			err = errors.New("a profile of several runs does not say in which window what ran")
		}
		return c, err
	}
	if s.InSegments() {
		return nil, errors.New("it is in segments, which are not cut into windows")
	}
	lists, err := windows.Of(s)
	if err != nil {
		return nil, err
	}
	if lists == nil && len(s.Threads) > 1 {
		return nil, errors.New("it does not say what its threads ran at the same time: record " +
			"it anew")
	}
	var stretches [][][]uint32 // by thread
	of := map[uint64]bool{}
	numbers := make([][]uint64, len(s.Threads))
	for i := range s.Threads {
		cut, err := cutUp(s, s.Threads[i].Grammar)
		if err != nil {
			return nil, err
		}
		if lists != nil {
			numbers[i] = lists[i]
		} else {
			numbers[i] = counting(len(cut))
		}
		numbers[i] = append(slices.Clip(numbers[i]), s.Figures.Windows+1) // which has not ended
		if len(cut) != len(numbers[i]) && len(cut) != len(numbers[i])-1 {
			return nil, fmt.Errorf("thread %d ran in %d windows by its stream, and in %d by the "+
				"list", s.Threads[i].TID, len(cut), len(numbers[i])-1)
		}
		for k := range cut {
			of[numbers[i][k]] = true
		}
		stretches = append(stretches, cut)
	}
	return gather(s, stretches, numbers, of)
}

// clusterCounts makes clusters of those that a path profile has; nil: it has none.
func clusterCounts(p *pathprofile.Counts, symbols int) *clustered {
	if p == nil || len(p.Clusters) == 0 {
		return nil
	}
	c := &clustered{}
	for _, x := range p.Clusters {
		c.windows += int(x.Windows)
		c.clusters = append(c.clusters,
			forest.NewCounted(append(slices.Clone(x.Of), make([]uint64, symbols-len(x.Of))...)))
	}
	return c
}

// counting counts from 1.
func counting(n int) (list []uint64) {
	for i := range n {
		list = append(list, uint64(i+1))
	}
	return list
}

// gather puts stretches of the same window, and of some in a row, into one cluster.
func gather(s *wpp.Snapshot, stretches [][][]uint32, numbers [][]uint64,
	of map[uint64]bool) (*clustered, error) {
	c := &clustered{windows: len(of)}
	all := make([]uint64, 0, len(of))
	for n := range of {
		all = append(all, n)
	}
	slices.Sort(all)
	size := (len(all) + mostClusters - 1) / mostClusters
	next := make([]int, len(stretches))
	for part := range slices.Chunk(all, max(1, size)) {
		last := part[len(part)-1]
		var grammars []*wpp.Grammar
		for i := range stretches {
			var body []uint32
			for ; next[i] < len(stretches[i]) && numbers[i][next[i]] <= last; next[i]++ {
				body = append(body, stretches[i][next[i]]...)
			}
			if len(body) == 0 {
				continue
			}
			g, err := excerpt(s.Threads[i].Grammar, body)
			if err != nil {
				return nil, err
			}
			grammars = append(grammars, g)
		}
		c.clusters = append(c.clusters, forest.New(len(s.Symbols), grammars, nil))
	}
	return c, nil
}

// excerpt is a grammar whose start rule has this body, with the rules of another that it uses.
func excerpt(g *wpp.Grammar, body []uint32) (*wpp.Grammar, error) {
	bodies, number := [][]uint32{body}, map[int]uint32{}
	for i := 0; i < len(bodies); i++ {
		own := slices.Clone(bodies[i])
		for k, v := range own {
			if !wpp.IsRule(v) {
				continue
			}
			n, ok := number[wpp.RuleOf(v)]
			if !ok {
				n = wpp.RuleSymbol(len(bodies))
				number[wpp.RuleOf(v)] = n
				bodies = append(bodies, g.Body(wpp.RuleOf(v)))
			}
			own[k] = n
		}
		bodies[i] = own
	}
	return wpp.NewGrammar(bodies)
}

// cutUp expands the rules of a grammar in which windows end, and cuts what is left behind each of
// these ends. The last piece may be empty, and is left out then.
func cutUp(s *wpp.Snapshot, g *wpp.Grammar) (list [][]uint32, err error) {
	ends := make([]bool, g.Rules()) // rule -> a window ends in it
	isEnd := func(v uint32) bool {
		return s.Symbols[v].IsMark && s.Symbols[v].Mark == ops.Gap && s.Symbols[v].N == 0
	}
	for _, rule := range slices.Backward(g.Order()) {
		ends[rule] = slices.ContainsFunc(g.Body(rule), func(v uint32) bool {
			if wpp.IsRule(v) {
				return ends[wpp.RuleOf(v)]
			}
			return isEnd(v)
		})
	}
	var piece []uint32
	stack := [][]uint32{g.Body(0)}
	for copied := 0; len(stack) > 0; {
		top := len(stack) - 1
		if len(stack[top]) == 0 {
			stack = stack[:top]
			continue
		}
		v := stack[top][0]
		stack[top] = stack[top][1:]
		if copied++; copied > mostStretched {
			return nil, errors.New("windows end too often in it")
		}
		switch {
		case wpp.IsRule(v) && ends[wpp.RuleOf(v)]:
			stack = append(stack, g.Body(wpp.RuleOf(v)))
			continue
		case !wpp.IsRule(v) && isEnd(v):
			list, piece = append(list, append(piece, v)), nil
			continue
		}
		piece = append(piece, v)
	}
	if len(piece) > 0 {
		list = append(list, piece)
	}
	return list, nil
}

// rename is Forest.Rename of each cluster.
func (c *clustered) rename(to []uint32, symbols int) {
	for _, f := range c.clusters {
		f.Rename(to, symbols)
	}
}

// shares estimates the shares that parts have of the cost of all, which weigh finds in an operand.
func (c *clustered) shares(weigh weigher, parts [][]uint32, cost []uint64) []cluster.Share {
	seen := make([][]cluster.Window, len(parts))
	for _, f := range c.clusters {
		d := operand{forest: f}
		var whole float64
		for sym, n := range f.Counts() {
			whole += float64(n) * float64(cost[sym])
		}
		for i, p := range weigh(&d, parts, cost) {
			seen[i] = append(seen[i], cluster.Window{Part: float64(p.Covered), Whole: whole})
		}
	}
	shares := make([]cluster.Share, len(parts))
	for i := range seen {
		shares[i] = cluster.Of(seen[i])
	}
	return shares
}
