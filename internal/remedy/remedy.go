// Package remedy marks errors that their user can do something about by asking for something else.
// The error says the thing and the cause; its Kind says what to ask for. How that is done (by which
// flag, for one) only the caller knows who was asked: cmd/wpptrace prints it behind the error.
package remedy

import "fmt"

// A Kind is what to ask for.
type Kind int

// The kinds.
const (
	_ Kind = iota

	OtherSnapshot // have the snapshot go to another file
	LinkTarget    // have it go to what the link leads to
	OtherRaw      // have the raw trace go to another file

	Select        // select other routines
	FewerProbes   // select fewer routines; a plan says how many probes some take
	LessKernelMem // have a smaller ring buffer, or select fewer routines
	LessMemory    // select fewer routines, or have control groups allow more memory
	MoreMemory    // have control groups allow more memory, or leave them
	ListEach      // a plan lists what is left out, and why
	List          // a plan lists the routines
	ListAll       // it does; and routines of libraries can be selected, too
	SelectInliner // select the routines that the code is inlined into, or as ListAll
	Link          // link the program with a build id, or do without weights
	OwnWeights    // record this build, or do without weights
	FewerLibs     // name fewer libraries

	LinkInteresting // link the program with a build id, or do without interesting paths
	OwnInteresting  // record this build, or do without interesting paths

	FewerRoutines // select fewer routines
	OwnCoverage   // name a snapshot that says what has run

	NoBudget       // do without a budget, or bound the slow-down otherwise
	NoTrial        // do without a trial
	NoFollow       // do without following
	Windows        // trace in windows, or follow
	RootOrNoFollow // be root, or do without following
	RootOrNoHold   // be root, or have nothing that stops the process
	OtherProfiler  // see where its CPU time goes by a profiler
	RecordLater    // start the process by the tool, or record it when it runs

	Kinds // how many there are, and 1
)

// An Error is an error with its remedy.
type Error struct {
	Kind Kind
	Err  error
}

// Errorf is fmt.Errorf with a remedy.
func Errorf(kind Kind, format string, args ...any) error {
	return &Error{kind, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }
