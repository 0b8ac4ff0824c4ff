package loads

import "wpptrace/loader/x86"

// A group is one read for several loads that lie within MostBytes of each other.
type group struct {
	base   int32 // node
	lo, hi int64 // what is read, beyond base
	out    bool  // there are too few cells for its address
}

func (g *group) holds(at value, size uint8) bool {
	return g.base == at.node && g.lo <= at.add && at.add+int64(size) <= g.hi
}

// grow makes room for a load, if that is possible.
func (g *group) grow(at value, size uint8) bool {
	lo, hi := min(g.lo, at.add), max(g.hi, at.add+int64(size))
	if g.base != at.node || hi-lo > MostBytes {
		return false
	}
	g.lo, g.hi = lo, hi
	return true
}

// A grouper finds the groups of the ways of a hit.
type grouper struct {
	ns    *nodes
	o     *Options
	known []*group // on the way, in the order of their reads
	asked []int32  // nodes that were asked for on the way
	had   []answer // by node
}

// group finds those of a way and of all behind it. last: it is no way of which the program makes
// the reads of another one after it.
func (g *grouper) group(w *way, last bool) {
	for i := range w.loads {
		l := &w.loads[i]
		if l.isRead() && !g.add(w, l.at, l.size) {
			l.left = l.need == toRead && !l.past && len(g.known) >= g.o.MostReads
			w.leaves = true
		}
	}
	w.leaves = w.leaves || w.cut
	if w.ends == returned && (!last || w.behind == 0 || !g.needs(w, w.address.node)) {
		w.ends, w.leaves = ended, true
	}
	if w.ends == returned {
		for reg := range int8(16) {
			if w.behind.Has(reg) && !g.needs(w, w.back[reg].node) {
				w.back[reg] = value{node: unknown}
			}
		}
		g.send(w)
	}
	if len(w.next) == 0 {
		return
	}
	if w.chooses = g.chooses(w); !w.chooses {
		for i, n := range w.next { // one after the other
			g.group(n, last && i == len(w.next)-1)
		}
		return
	}
	before, asked := len(g.known), len(g.asked)
	for _, n := range w.next {
		g.group(n, last)
		g.known = g.known[:before]
		g.forget(asked)
	}
}

// send leaves the last stores of a way that returns, of those that its callers may load from, and
// adds what has to be read for them.
func (g *grouper) send(w *way) {
	sp, all := w.back[x86.RSP], w.sent
	w.sent = nil
	for i := len(all) - 1; i >= 0 && len(w.sent) < MostStores; i-- {
		s := &all[i]
		isGone := s.at.node == sp.node && s.at.add < sp.add
		isWord := s.size == 1 || s.size == 2 || s.size == 4 || s.size == 8
		if !isGone && isWord && int64(int32(s.at.add)) == s.at.add &&
			!overlap(all[i+1:], s.at, s.size) &&
			g.needs(w, s.at.node) && g.needs(w, s.is.node) {
			w.sent = append(w.sent, *s)
		}
	}
}

// chooses reports whether the program can know which of the ways behind this one is taken, and has
// something of it, and adds what it has to read for that.
func (g *grouper) chooses(w *way) bool {
	has := false
	for _, n := range w.next {
		has = has || n.hasReads()
	}
	switch {
	case !has:
		return false
	case w.ends == condition:
		_, x, y, _ := w.flags.branch(w.code)
		return g.needs(w, x.node) && g.needs(w, y.node)
	case w.ends == table || w.ends == labels:
		return g.needs(w, w.index.node)
	}
	return false
}

// isRead reports whether a program is to make the load.
func (l *load) isRead() bool {
	return l.need == toRead || l.need == returnAddress || l.need == byLibrary
}

// hasReads reports whether anything has to be read on a way or behind it.
func (w *way) hasReads() bool {
	for i := range w.loads {
		if n := w.loads[i].need; n == toRead || n == byLibrary {
			return true
		}
	}
	for _, n := range w.next {
		if n.hasReads() {
			return true
		}
	}
	return w.ends == returned && w.behind != 0
}

// add has a load made on a way, and before it those that its address depends on; it reports whether
// there is room for them.
func (g *grouper) add(w *way, at value, size uint8) bool {
	for _, k := range g.known {
		if k.holds(at, size) {
			return true
		}
	}
	if int64(int32(at.add)) != at.add || int64(int32(at.add+int64(size))) != at.add+int64(size) ||
		!g.needs(w, at.node) {
		return false
	}
	for _, k := range g.known {
		if k.grow(at, size) {
			return true
		}
	}
	if len(g.known) >= g.o.MostReads || size > MostBytes {
		return false
	}
	n := &group{base: at.node, lo: at.add, hi: at.add + int64(size)}
	g.known = append(g.known, n)
	w.groups = append(w.groups, n)
	return true
}

// An answer says whether a node can be computed on the way.
type answer uint8

const (
	notAsked answer = iota
	computable
	missing
)

// needs has the loads made that a node depends on, and reports whether it can be computed then.
func (g *grouper) needs(w *way, id int32) bool {
	if id < fixed {
		return id != unknown
	}
	for int(id) >= len(g.had) {
		g.had = append(g.had, notAsked)
	}
	if was := g.had[id]; was != notAsked {
		return was == computable
	}
	n := g.ns.list[id]
	ok := false
	switch n.op {
	case Fetch:
		ok = g.add(w, n.a, n.size)
	case either:
		q := &g.ns.asked[n.asks]
		ok = g.needs(w, q.flags.a.node) && g.needs(w, q.flags.b.node) &&
			g.needs(w, n.a.node) && g.needs(w, n.b.node)
	default:
		ok = g.needs(w, n.a.node) && g.needs(w, n.b.node)
	}
	g.had[id] = missing
	if ok {
		g.had[id] = computable
	}
	g.asked = append(g.asked, id)
	return ok
}

// forget takes back what has been asked for since there were so many.
func (g *grouper) forget(asked int) {
	for _, id := range g.asked[asked:] {
		g.had[id] = notAsked
	}
	g.asked = g.asked[:asked]
}
