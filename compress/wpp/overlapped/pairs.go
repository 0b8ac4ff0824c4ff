package overlapped

import (
	"wpptrace/compress/ops"
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
	External               // a call through a pointer, or of external code, or its return
	LeftOut                // the loop is left out
	Reasons  = iota
)

// String returns the reason as it is printed.
func (r Reason) String() string {
	return [...]string{"a path is not whole", "interrupted", "external code, or through a pointer",
		"the loop is left out"}[r]
}

// A Path is what of a path it depends on with which others it makes pairs.
type Path struct {
	Start ops.Start
	End   ops.End
	Whole bool // its beginning and its end are known
	// of the routine that the call or tail jump at its end is of, if it is a traced one and known
	// for sure; else -1
	Callee int
	// LeftOut: it begins at the head of a loop that is left out.
	LeftOut bool
}

// Pairs finds which path directly follows which, in the operations of any number of threads that
// take turns. It belongs to one goroutine.
type Pairs struct {
	alphabet *ops.Symbols
	describe func(sym uint32) Path
	found    func(kind Kind, p, q uint32, times uint64)
	paths    []Path
	known    []bool
	// Broken counts the pairs that are none. Of a call through a pointer or of external code
	// neither the call nor its return makes a pair.
	Broken [Reasons]uint64
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
func (s *Pairs) Thread() *Thread { return &Thread{pairs: s, tail: -1} }

// A Thread is an ops.Sink that finds the pairs of one thread. Memory is some bytes an activation
// that is open.
type Thread struct {
	pairs *Pairs
	stack []activation
	// the routine that the activation that has just ended jumped to, which returns where that would
	// have; -1: none
	tail int
	// gaps so far: pairs do not cross one
	gaps uint32
}

// none is no symbol.
const none = ^uint32(0)

// An activation is one that is open.
type activation struct {
	last     uint32 // its last path, whole, which nothing has followed yet; none: there is none
	caller   uint32 // the caller's path that called it, before its own first path; else none
	returned uint32 // the path with which what it called has returned; none: that is not known
	gaps     uint32 // of the thread, when last was noted
	direct   bool   // its end returns behind the call that ended the caller's last path
	called   bool   // the call that ended its last path has begun an activation
	fresh    bool   // it has had no path yet
}

func (t *Thread) top() *activation {
	if len(t.stack) == 0 {
		return nil
	}
	return &t.stack[len(t.stack)-1]
}

// EnterRoutine begins an activation.
func (t *Thread) EnterRoutine(routine int) {
	a := activation{last: none, caller: none, returned: none, gaps: t.gaps, fresh: true}
	up := t.top()
	switch {
	case t.tail >= 0:
		a.direct = t.tail == routine
	case up == nil || up.last == none || up.called || up.gaps != t.gaps:
	case t.pairs.paths[up.last].End == ops.EndCall:
		up.called = true
		if t.pairs.paths[up.last].Callee == routine {
			a.caller, a.direct = up.last, true
		}
	}
	t.tail = -1
	t.stack = append(t.stack, a)
}

// LeaveRoutine ends the innermost activation.
func (t *Thread) LeaveRoutine() {
	a := t.top()
	if a == nil {
		return
	}
	last, direct := a.last, a.direct && a.gaps == t.gaps
	t.stack = t.stack[:len(t.stack)-1]
	t.tail = -1
	if !direct || last == none {
		return
	}
	switch p := &t.pairs.paths[last]; p.End {
	case ops.EndReturn:
		if up := t.top(); up != nil {
			up.returned = last
		}
	case ops.EndTail:
		t.tail = p.Callee
	}
}

// NewPath makes a pair of the path and of the one that it follows.
func (t *Thread) NewPath(routine int, path, times uint64) {
	t.Symbol(t.pairs.alphabet.Symbol(routine, path), times)
}

// Symbol is NewPath of a path's symbol.
func (t *Thread) Symbol(sym uint32, times uint64) {
	t.tail = -1
	a := t.top()
	if a == nil { // of an activation that began before all that is known
		return
	}
	q := t.pairs.path(sym)
	t.follow(a, sym, q)
	if times > 1 {
		t.pair(OverLoop, sym, sym, q, times-1)
	}
	*a = activation{last: sym, caller: none, returned: none, gaps: t.gaps, direct: a.direct}
	if !q.Whole {
		a.last = none
	}
}

// follow makes a pair of a path and of the one before it, if there is one.
func (t *Thread) follow(a *activation, sym uint32, q *Path) {
	if a.gaps != t.gaps {
		a.direct = a.direct && !a.fresh
		return
	}
	switch {
	case q.Start == ops.StartEntry && a.caller != none:
		t.pair(Into, a.caller, sym, q, 1)
	case q.Start == ops.StartCall && a.returned != none:
		t.pair(Back, a.returned, sym, q, 1)
	case q.Start == ops.StartCall && a.last != none:
		t.pairs.Broken[External]++
	case q.Start == ops.StartLoop && a.last != none && t.pairs.paths[a.last].End == ops.EndLoop:
		t.pair(OverLoop, a.last, sym, q, 1)
	case !q.Whole && a.last != none:
		t.pairs.Broken[Partial]++
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

// Mark breaks pairs: what it stands between does not follow directly. An activation that has had no
// path yet is the same as one that begins behind the mark.
func (t *Thread) Mark(m ops.Mark, _ uint64) {
	t.tail = -1
	if m == ops.Gap {
		t.gaps++
		t.pairs.Broken[Marked]++
		return
	}
	for i := len(t.stack) - 1; i >= 0; i-- {
		a := &t.stack[i]
		if a.last != none || a.caller != none || a.returned != none {
			t.pairs.Broken[Marked]++
		}
		a.last, a.caller, a.returned = none, none, none
		if !a.fresh {
			break
		}
		a.direct = false
	}
}
