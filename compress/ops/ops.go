package ops

import "fmt"

// A Start says where a path begins.
type Start uint8

// The starts of a path.
const (
	StartEntry Start = iota // the routine's entry
	StartLoop               // the target of a back edge
	StartCall               // the block after a call
	StartPad                // an exception landing pad
	StartExtra              // an extra cut, made to keep path numbers small
	// tracing began, or resumed after a gap, within the path: its beginning is not known
	StartResume
)

var startNames = [...]string{"entry", "loop", "call", "pad", "extra", "resume"}

// Valid reports whether s is one of the starts above.
func (s Start) Valid() bool { return int(s) < len(startNames) }

// String returns the start's name as the command line prints it.
func (s Start) String() string { return name(startNames[:], "start", uint8(s)) }

// An End says where a path ends.
type End uint8

// The ends of a path.
const (
	EndLoop     End = iota // a back edge
	EndCall                // a call
	EndReturn              // a return
	EndTail                // a tail jump
	EndNoReturn            // a call that never returns, or a trap
	EndExtra               // an extra cut
	// the path was left in the middle (fault, longjmp), or tracing ended: its tail is not known
	EndCut
)

var endNames = [...]string{"loop", "call", "return", "tail", "noreturn", "extra", "cut"}

// Valid reports whether e is one of the ends above.
func (e End) Valid() bool { return int(e) < len(endNames) }

// String returns the end's name as the command line prints it.
func (e End) String() string { return name(endNames[:], "end", uint8(e)) }

// A Mark is something to say about the stream between two paths.
type Mark uint8

// The marks.
const (
	Gap    Mark = iota // events were lost here; n: how many (0: unknown)
	Resume             // tracing of an activation began in its middle
	// n activations were left without returning (longjmp, exception, thread exit, a stack switched
	// away)
	Unwind
	Cut // the path before was cut off
	// the next activation interrupted the running one asynchronously (a signal handler)
	Handler
)

var markNames = [...]string{"gap", "resume", "unwind", "cut", "handler"}

// Valid reports whether m is one of the marks above.
func (m Mark) Valid() bool { return int(m) < len(markNames) }

// String returns the mark's name as the command line prints it.
func (m Mark) String() string { return name(markNames[:], "mark", uint8(m)) }

// A Caller says what began an activation. A stream of symbols, or a raw trace, does not keep it.
type Caller uint8

// The callers.
const (
	Unknown Caller = iota // it is not said
	// A traced routine called it, or jumped to it: it returns behind that call, or where what
	// jumped would have. A stub, or external code that only jumps on, may be in between.
	Traced
	External // external code did, or what did is not known
)

func name(names []string, kind string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

// MostTimes is how many times a path may be said to have run at once: as often as a loop does in
// some minutes.
const MostTimes = 1 << 40

// A Sink takes the operations of one thread, in order (Larus 1999, section 2).
// It is called from one goroutine at a time and must not keep the caller waiting.
//
// A stream is well formed when it keeps the rules of the package comment. So a decoder puts a
// Resume mark directly before the first path of the activation that it resumes, gives up
// activations after a gap by an Unwind mark, and reports an activation that ends before any path of
// it is known by a partial path without blocks (StartEntry or StartResume to EndCut).
type Sink interface {
	// EnterRoutine says that a new activation of a routine began, and by whom.
	EnterRoutine(routine int, by Caller)
	// NewPath says that the path with this number ran to its end in the innermost activation of the
	// routine: once, or from the target of a back edge to one so many times, one directly after the
	// other. Numbers at and above the routine's number of acyclic paths name partial paths
	// (StartResume or EndCut). times is from 1 to MostTimes.
	NewPath(routine int, path, times uint64)
	// LeaveRoutine says that the innermost activation ended, by return, tail jump or unwinding.
	LeaveRoutine()
	// Mark says something about the stream at this place.
	Mark(m Mark, n uint64)
}
