package pairs

import "wpptrace/compress/ops"

// A Kind is what stands between the two paths of a pair.
type Kind uint8

// The kinds.
const (
	None   Kind = iota // there is no pair
	Loop               // a back edge
	Call               // a call: type I in the paper
	Return             // a return: type II
)

// String returns the kind's name as the command line prints it.
func (k Kind) String() string {
	return [...]string{"none", "loop", "call", "return"}[k]
}

// A Break is a reason why a path that ended at a back edge, a call or a return has no pair with
// what came next, although it may have gone on there.
type Break uint8

// The reasons.
const (
	Lost      Break = iota // events were lost behind it
	Unwound                // activations were left by an exception, longjmp or the like
	Signal                 // a signal handler began behind it
	Partial                // of it, or of the next path, a part alone is known
	CalledBy               // the callee was begun by external code, or by a signal
	Elsewhere              // control went on at an exception's landing pad, or at another place
	End                    // the recording, or the thread, ended behind it
	NumBreaks
)

// String returns the reason as the command line prints it.
func (b Break) String() string {
	return [...]string{"events were lost", "unwinding", "a signal handler", "a partial path",
		"begun by external code or a signal", "went on elsewhere", "the end"}[b]
}

// A Walk follows one thread. The zero value is one at its beginning. It belongs to one goroutine;
// memory is one byte for each open activation.
type Walk struct {
	Breaks [NumBreaks]uint64 // so far

	called  []bool // of each open activation: a path of its caller ends at the call that began it
	before  path   // the last one, if nothing came behind it
	next    opening
	because Break // if before is not there any more: why
	pending bool  // there would have been a pair
}

type path struct {
	known bool
	sym   uint32
	whole bool
	end   ops.End
	// its activation, which it ended, was begun by a call of the caller's
	called bool
}

// An opening is how the next activation begins.
type opening uint8

const (
	plain opening = iota
	handled
	resumed
)

// Path takes a path and returns with which one before it makes a pair, if kind is not None.
func (w *Walk) Path(sym uint32, start ops.Start, end ops.End) (before uint32, kind Kind) {
	last := w.before
	now := path{known: true, sym: sym, end: end,
		whole: start != ops.StartResume && end != ops.EndCut}
	kind = w.kind(last, start, now.whole)
	if start == ops.StartEntry || w.next == resumed {
		tail := last.known && last.end == ops.EndTail && last.called
		w.called = append(w.called, w.next == plain && start == ops.StartEntry &&
			(tail || last.known && last.end == ops.EndCall))
	}
	w.next = plain
	if (end == ops.EndReturn || end == ops.EndTail) && len(w.called) > 0 {
		now.called = w.called[len(w.called)-1]
		w.called = w.called[:len(w.called)-1]
	}
	w.before, w.pending = now, false
	return last.sym, kind
}

// kind says what stands between the last path and one that starts so, and counts why nothing does.
func (w *Walk) kind(last path, start ops.Start, whole bool) Kind {
	if !last.known {
		if w.pending {
			w.Breaks[w.because]++
		}
		return None
	}
	kind, why := None, Elsewhere
	switch {
	case last.end == ops.EndLoop && start == ops.StartLoop:
		kind = Loop
	case last.end == ops.EndCall && start == ops.StartEntry:
		kind = Call
	case last.end == ops.EndReturn && start == ops.StartCall && last.called:
		kind = Return
	case last.end == ops.EndReturn && start == ops.StartCall:
		why = CalledBy
	case last.end == ops.EndCall && start == ops.StartCall, // of external code
		last.end == ops.EndReturn && start == ops.StartEntry, // which calls again
		last.end != ops.EndLoop && last.end != ops.EndCall && last.end != ops.EndReturn:
		return None
	}
	switch {
	case kind == None:
		w.Breaks[why]++
	case !whole || !last.whole:
		w.Breaks[Partial]++
		kind = None
	}
	return kind
}

// Again takes further executions of the path that came last, one directly after the other, from
// the target of a back edge to one: it makes a pair with itself as often.
func (w *Walk) Again(times uint64) (pairs uint64) {
	if !w.before.whole {
		w.Breaks[Partial] += times
		return 0
	}
	return times
}

// Mark takes a mark, which breaks a pair.
func (w *Walk) Mark(m ops.Mark, n uint64) {
	reason := [...]Break{ops.Gap: Lost, ops.Resume: Lost, ops.Unwind: Unwound, ops.Cut: Partial,
		ops.Handler: Signal}
	w.interrupt(reason[m])
	w.next = plain
	switch m {
	case ops.Resume:
		w.next = resumed
	case ops.Handler:
		w.next = handled
	case ops.Unwind:
		w.called = w.called[:len(w.called)-int(min(n, uint64(len(w.called))))]
	}
}

func (w *Walk) interrupt(why Break) {
	if !w.before.known {
		return
	}
	switch w.before.end {
	case ops.EndLoop, ops.EndCall, ops.EndReturn:
		w.pending = true
	default:
		w.pending = false
	}
	w.because, w.before = why, path{}
}

// Close says that nothing more comes.
func (w *Walk) Close() {
	w.interrupt(End)
	if w.pending {
		w.Breaks[w.because]++
		w.pending = false
	}
}
