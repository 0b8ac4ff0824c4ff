package query

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"

	"wpptrace/compress/wpp"
)

// A Neighbour is what ran directly before or after executions of a path.
type Neighbour struct {
	Symbols []uint32 `json:"symbols"` // in the order in which they ran; fewer than asked for at the beginning or the end of a thread
	Count   uint64   `json:"count"`
}

// A Context is what ran around a path, or the paths of a routine.
type Context struct {
	Name   string      `json:"name"`
	Count  uint64      `json:"count"` // executions
	Before []Neighbour `json:"before"`
	After  []Neighbour `json:"after"` // both by falling count, then by rising symbols
}

// MostNeighbours is the greatest number of symbols of a context, to each side.
const MostNeighbours = 1000

// ContextOf finds the dynamic context of what a name as in a FindQuery stands for (Larus 1999, section 3.3): the sequences of k symbols, paths and
// marks, that ran directly before and directly after it in the threads with these ids, or in all, and how often each did. Time and
// memory are in proportion to the grammars, and to k times the places in them of the paths with what follows them.
func ContextOf(s *wpp.Snapshot, name string, k int, tids ...int) (*Context, error) {
	if k < 1 || k > MostNeighbours {
		return nil, fmt.Errorf("context of %s: %d paths to each side are not between 1 and %d", printable(name), k, MostNeighbours)
	}
	threads, err := selectThreads(s, tids)
	if err != nil {
		return nil, err
	}
	names := newAtoms(s)
	if _, err := names.add(name); err != nil {
		return nil, fmt.Errorf("context of %s: %w", printable(name), err)
	}
	c := &Context{Name: name}
	c.Count, c.After = neighbours(names, newForest(s, threads), k)
	backward := make([]*wpp.Thread, len(threads))
	for i, t := range threads {
		reversed, err := reversedGrammar(t.Grammar)
		if err != nil {
			return nil, err
		}
		backward[i] = &wpp.Thread{TID: t.TID, Grammar: reversed}
	}
	_, c.Before = neighbours(names, newForest(s, backward), k)
	for _, n := range c.Before {
		slices.Reverse(n.Symbols)
	}
	for _, list := range [][]Neighbour{c.Before, c.After} {
		slices.SortFunc(list, func(a, b Neighbour) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), slices.Compare(a.Symbols, b.Symbols))
		})
	}
	return c, nil
}

// reversedGrammar derives the stream of a grammar backward.
func reversedGrammar(g *wpp.Grammar) (*wpp.Grammar, error) {
	bodies := make([][]uint32, g.Rules())
	for r := range bodies {
		bodies[r] = slices.Clone(g.Body(r))
		slices.Reverse(bodies[r])
	}
	return wpp.NewGrammar(bodies)
}

// A cluster is the executions that the same symbols followed so far.
type cluster struct {
	symbols []uint32
	count   uint64
	bundles []bundle
}

// neighbours lists what follows the paths of the first atom.
func neighbours(a *atoms, f *forest, k int) (count uint64, list []Neighbour) {
	w := newWalker(f)
	var at []uint32
	for pos, v := range f.body {
		if !wpp.IsRule(v) && a.mask[v]&1 == 1 {
			at = append(at, uint32(pos))
		}
	}
	root := cluster{bundles: w.beginning(at)}
	root.count = countOf(root.bundles)
	level := []cluster{root}
	for range k {
		var next []cluster
		for _, c := range level {
			longer, followed := w.split(c)
			if followed < c.count && len(c.symbols) > 0 { // the thread ends there
				list = append(list, Neighbour{c.symbols, c.count - followed})
			}
			next = append(next, longer...)
		}
		level = next
	}
	for _, c := range level {
		list = append(list, Neighbour{c.symbols, c.count})
	}
	return root.count, list
}

// split parts a cluster by what follows, and says how much of it something follows.
func (w *walker) split(c cluster) (parts []cluster, followed uint64) {
	number := make(map[uint32]int)
	for _, st := range w.follow(c.bundles) {
		i, ok := number[st.symbol]
		if !ok {
			i = len(parts)
			number[st.symbol] = i
			parts = append(parts, cluster{symbols: append(slices.Clone(c.symbols), st.symbol)})
		}
		parts[i].bundles = append(parts[i].bundles, st.to)
		parts[i].count = addSaturating(parts[i].count, st.to.count)
		followed = addSaturating(followed, st.to.count)
	}
	return parts, followed
}

// WriteContext writes up to top of what ran before and after, all where top is 0: a line each, its count, its share of all executions, its paths.
func WriteContext(w io.Writer, s *wpp.Snapshot, c *Context, top int) error {
	out := bufio.NewWriter(w)
	labels := newLabels(s)
	fmt.Fprintf(out, "%s ran %s\n", printable(c.Name), plural(c.Count, "time"))
	for _, side := range []struct {
		title string
		list  []Neighbour
	}{{"BEFORE", c.Before}, {"AFTER", c.After}} {
		shown := side.list
		if top > 0 {
			shown = shown[:min(top, len(shown))]
		}
		fmt.Fprintf(out, "\n%12s    SHARE  %s (%d of %d)\n", "COUNT", side.title, len(shown), len(side.list))
		for _, n := range shown {
			fmt.Fprintf(out, "%12d  %6.2f%%%s\n", n.Count, percent(n.Count, c.Count), " "+labels.line(n.Symbols, "", " "))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write context: %w", err)
	}
	return nil
}

// WriteContextJSON writes a context, up to top of each side, all where top is 0, as one JSON object; paths says what the symbols are.
func WriteContextJSON(w io.Writer, s *wpp.Snapshot, c *Context, top int) error {
	shown := *c
	var all []Occurrence
	for _, list := range []*[]Neighbour{&shown.Before, &shown.After} {
		if top > 0 {
			*list = (*list)[:min(top, len(*list))]
		}
		*list = append([]Neighbour{}, *list...)
		for _, n := range *list {
			all = append(all, Occurrence{Symbols: n.Symbols})
		}
	}
	report := struct {
		SchemaVersion int `json:"schema_version"`
		Context
		Paths map[string]*label `json:"paths"`
	}{SchemaVersion, shown, labelsIn(s, all)}
	return writeJSON(w, report, "context")
}
