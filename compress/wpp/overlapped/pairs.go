package overlapped

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
)

// A Kind says how one path follows another.
type Kind uint8

// The kinds of pairs.
const (
	OverLoop Kind = iota // over a back edge, in the same activation (section 2)
	Into                 // into the activation that its call begins: type I (section 3)
	Back                 // back into the caller: type II
)

// String returns the kind as it is printed.
func (k Kind) String() string { return [...]string{"loop", "call", "return"}[k] }

// A Reason says why two paths are no pair, though the first one ended with a back edge, a call or a
// return.
type Reason uint8

// The reasons.
const (
	Partial  Reason = iota // the beginning or the end of one of them is not known
	Marked                 // events were lost between them, a handler ran, or activations were left
	External               // external code began the activation, or may have
	LeftOut                // the loop is left out
	Mixed                  // at this call external code began some activations, or may have
	Reasons  = iota
)

// String returns the reason as it is printed.
func (r Reason) String() string {
	return [...]string{"a path is not whole", "interrupted",
		"external code in between, or perhaps", "the loop is left out",
		"external code in between some times, or perhaps"}[r]
}

// A Path is what of a path it depends on with which others it makes pairs.
type Path struct {
	Routine int
	Start   ops.Start
	End     ops.End
	Whole   bool // its beginning and its end are known
	// of the routine that the call or tail jump at its end is of, if it is a traced one and known
	// for sure; else -1
	Callee int
	At     int // the block that ends with that call or tail jump
	// LeftOut: it begins at the head of a loop that is left out.
	LeftOut bool
}

// IsWhole reports whether a symbol is a path that is known from its start to its end.
func IsWhole(y *wpp.Symbol) bool {
	return !y.IsMark && y.Start != ops.StartResume && y.End != ops.EndCut && len(y.Blocks) > 0
}

// PathOf returns what a symbol's path depends on, by the shape of its routine; nil: that is not
// known, and then the path is not whole.
func PathOf(y *wpp.Symbol, shape *Shape) Path {
	p := Path{Routine: y.Routine, Start: y.Start, End: y.End, Callee: -1,
		Whole: shape != nil && IsWhole(y)}
	if p.Whole {
		p.At = y.Blocks[len(y.Blocks)-1]
		p.Callee = shape.Callee(p.At)
		p.LeftOut = y.Start == ops.StartLoop && shape.CountedLoop(y.Blocks[0]) == nil
	}
	return p
}

// Pairs finds which path directly follows which, in the operations of any number of threads that
// take turns. It belongs to one goroutine.
type Pairs struct {
	alphabet *ops.Symbols
	describe func(sym uint32) Path
	found    func(kind Kind, p, q uint32, times uint64)
	paths    []Path
	known    []bool
	// Broken counts the pairs that are none. Of an activation that external code began, or may
	// have, neither its beginning nor its end makes a pair.
	Broken [Reasons]uint64
	// Entries say how activations began where the code and the stream do not; nil: not known.
	Entries entries.Counts
	// Unsure is called, unless nil, for what is no pair as External or Mixed because it is not
	// known how an activation began.
	Unsure func(u Unsure)
}

// An Unsure pair is of two paths one of which may have followed the other directly.
type Unsure struct {
	Kind   Kind   // Into or Back
	P, Q   uint32 // symbols
	Reason Reason // External or Mixed
}

// NewPairs returns what calls found for each pair of symbols of an alphabet. describe is called
// once for each path.
func NewPairs(alphabet *ops.Symbols, describe func(sym uint32) Path,
	found func(kind Kind, p, q uint32, times uint64)) *Pairs {
	return &Pairs{alphabet: alphabet, describe: describe, found: found}
}

// path returns what is known of a symbol's path.
func (s *Pairs) path(sym uint32) *Path {
	if int(sym) >= len(s.paths) {
		more := max(s.alphabet.Len(), int(sym)+1) - len(s.paths)
		s.paths = append(s.paths, make([]Path, more)...)
		s.known = append(s.known, make([]bool, more)...)
	}
	if !s.known[sym] {
		s.paths[sym], s.known[sym] = s.describe(sym), true
	}
	return &s.paths[sym]
}

// Thread returns the sink of a thread's operations.
func (s *Pairs) Thread() *Thread { return &Thread{pairs: s, last: none} }

// A Thread is an ops.Sink that finds the pairs of one thread. What directly follows a path comes
// next in the stream. Memory is a byte for each activation that is open.
type Thread struct {
	pairs *Pairs
	// the path that came last, if it is whole and nothing else has come since; else none
	last    uint32
	returns []origin   // of activations that are open
	back    origin     // of the activation that the last path has left
	resumes bool       // the next path is the first of an activation that began before
	by      ops.Caller // by whom the activation was begun that is the first one's of the next path
}

// An origin says whether an activation was begun directly, by the path before, and so returns
// behind the call at its end, or where what jumped there would have.
type origin uint8

const (
	foreign origin = iota
	untold         // it is not known
	mixed          // nor that; both were seen at the call
	direct
)

// none is no symbol.
const none = ^uint32(0)

// EnterRoutine says by whom the activation was begun whose first path comes next, if one does.
func (t *Thread) EnterRoutine(_ int, by ops.Caller) { t.by = by }

// LeaveRoutine says nothing that paths do not say.
func (t *Thread) LeaveRoutine() {}

// NewPath makes a pair of the path and of the one that it follows.
func (t *Thread) NewPath(routine int, path, times uint64) {
	t.Symbol(t.pairs.alphabet.Symbol(routine, path), times)
}

// Symbol is NewPath of a path's symbol.
func (t *Thread) Symbol(sym uint32, times uint64) {
	q := t.pairs.path(sym)
	begun := foreign
	if q.Start == ops.StartEntry || t.resumes {
		begun = t.enter(q)
		t.returns = append(t.returns, begun)
	}
	if t.last != none {
		t.follow(&t.pairs.paths[t.last], sym, q, begun)
	}
	if times > 1 {
		t.pair(OverLoop, sym, sym, q, times-1)
	}
	t.last, t.back, t.resumes, t.by = sym, foreign, false, ops.Unknown
	if !q.Whole {
		t.last = none
	}
	if n := len(t.returns); n > 0 && (q.End == ops.EndReturn || q.End == ops.EndTail) {
		t.back = t.returns[n-1]
		t.returns = t.returns[:n-1]
	}
}

// enter returns the origin of the activation that begins with a path.
func (t *Thread) enter(q *Path) origin {
	if t.last == none || t.resumes {
		return foreign
	}
	p := &t.pairs.paths[t.last]
	switch {
	case p.End == ops.EndCall:
		return t.originOf(p, q)
	case p.End == ops.EndTail && t.back != foreign:
		return min(t.back, t.originOf(p, q))
	}
	return foreign
}

func (t *Thread) originOf(p, q *Path) origin {
	switch {
	case p.Callee == q.Routine, p.Callee < 0 && t.by == ops.Traced:
		return direct
	case p.Callee >= 0, t.by == ops.External:
		return foreign
	}
	n, ok := t.pairs.Entries[entries.Call{Routine: p.Routine, Block: p.At, Callee: q.Routine}]
	switch {
	case !ok:
		return untold
	case n.External == 0:
		return direct
	case n.Traced == 0:
		return foreign
	}
	return mixed
}

// follow makes a pair of a path and of the last one, if the one follows the other. begun: the
// origin of the activation that the path is the first of.
func (t *Thread) follow(p *Path, sym uint32, q *Path, begun origin) {
	switch {
	case p.End == ops.EndLoop:
		if q.Start == ops.StartLoop {
			t.pair(OverLoop, t.last, sym, q, 1)
		}
	case p.End == ops.EndCall && q.Start == ops.StartEntry:
		t.across(Into, sym, q, begun)
	case p.End == ops.EndReturn && q.Start == ops.StartCall:
		t.across(Back, sym, q, t.back)
	}
}

// across makes a pair of a path and of the last one, across the call that an activation of this
// origin was begun by.
func (t *Thread) across(kind Kind, sym uint32, q *Path, o origin) {
	if o == direct {
		t.pair(kind, t.last, sym, q, 1)
		return
	}
	reason := External
	if o == mixed {
		reason = Mixed
	}
	t.pairs.Broken[reason]++
	if o != foreign && q.Whole && t.pairs.Unsure != nil {
		t.pairs.Unsure(Unsure{kind, t.last, sym, reason})
	}
}

func (t *Thread) pair(kind Kind, p, sym uint32, q *Path, times uint64) {
	switch {
	case !q.Whole:
		t.pairs.Broken[Partial] += times
	case kind == OverLoop && q.LeftOut:
		t.pairs.Broken[LeftOut] += times
	default:
		t.pairs.found(kind, p, sym, times)
	}
}

// Mark breaks pairs: what it stands between does not follow directly.
func (t *Thread) Mark(m ops.Mark, n uint64) {
	if t.last != none {
		t.pairs.Broken[Marked]++
	}
	t.last, t.back, t.resumes, t.by = none, foreign, m == ops.Resume, ops.Unknown
	if m == ops.Unwind {
		t.returns = t.returns[:len(t.returns)-int(min(n, uint64(len(t.returns))))]
	}
}
