package record

import (
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/source"
	"wpptrace/internal/traced"
)

// An Event is something that happens during a recording: one of the types below. A handler is
// called on the recording's goroutine, which waits for it: the process goes on meanwhile. In what
// order they come, the package's documentation says.
type Event interface{ event() }

func (NotSampled) event()       {}
func (Refused) event()          {}
func (HotSelected) event()      {}
func (Planned) event()          {}
func (Forecast) event()         {}
func (Attached) event()         {}
func (Began) event()            {}
func (Forked) event()           {}
func (CopiesStay) event()       {}
func (ForksCounted) event()     {}
func (LibraryAdded) event()     {}
func (LibraryLeftOut) event()   {}
func (LetGoOn) event()          {}
func (WindowsBegin) event()     {}
func (WindowOpened) event()     {}
func (WindowClosed) event()     {}
func (SitesCounted) event()     {}
func (SnapshotWritten) event()  {}
func (SnapshotFailed) event()   {}
func (DebugInfoMissing) event() {}
func (Progress) event()         {}
func (Ended) event()            {}

// NotSampled says that it will not be known where the CPU time of the process goes, and why. All
// else is recorded. It comes before Planned.
type NotSampled struct{ Err error }

// Planned says which probes a recording takes. Nothing has touched the process yet.
type Planned struct {
	Program *traced.Program
	// Removal is how long it takes on this kernel to take the probes out.
	Removal time.Duration
}

// Refused says where the CPU time of a process goes that cannot be recorded: the error says why.
type Refused struct {
	CPUTime *samples.Profile // no file is an image of any snapshot
}

// HotSelected says that of a large image those routines are traced that samples were in, and
// routines that they call.
type HotSelected struct {
	Image   string
	Sampled int    // routines that samples were in
	Traced  int    // routines, these included
	All     int    // that were recovered
	Samples uint64 // that were in the image
	Part    bool   // no more were than is needed
}

// Forecast says how much slower a process that is at work will be, before probes go in.
type Forecast struct {
	Forecast overhead.Forecast
	Load     float64 // CPUs that it uses or, where that is little, would use if it had them
	// Traced is the share of its CPU time that goes to routines that will be traced, by samples
	// while the probes were planned; of no samples: it is not known.
	Traced samples.Share
	Probes int
}

// Attached says that the probes stand.
type Attached struct {
	// Unmatched are the globs of the selection that name no library so far: none that the process
	// has loaded or, of one that has not run yet, none that its program is linked with.
	Unmatched []string
}

// Began says that the recording has begun.
type Began struct{ Path string } // where the snapshot goes

// Forked says that the process has started another one for the first time, which is not recorded.
type Forked struct{}

// CopiesStay says that processes which the recorded one has forked are slowed down as it is, for
// they have copies of its probes, and why these cannot be taken out before the recording ends.
type CopiesStay struct{ Err error }

// ForksCounted says what processes the recorded one has started, none of which is recorded. It
// comes when the probes are out, and so are their copies.
type ForksCounted struct {
	Started int
	Copies  int           // of these, that had copies of the probes which stood, if any
	Longest time.Duration // that one had them, at most
}

// LibraryAdded says that a library is traced from here on.
type LibraryAdded struct {
	Path    string
	Program *traced.Program
}

// LibraryLeftOut says that a library is external code, which the selection names, and why.
type LibraryLeftOut struct {
	Path string
	Err  error
}

// LetGoOn says that somebody else has let the process go on, which was held because it had loaded
// code: what it did meanwhile is not recorded.
type LetGoOn struct{}

// WindowsBegin says that tracing all of the process costs more than the budget, so that it is
// traced in windows from here on.
type WindowsBegin struct {
	Window time.Duration // that one lasts at least
	Wait   time.Duration // until the next one, at the load that the process has
	Left   time.Duration // until the recording is over; 0: nobody knows
}

// WindowOpened says that probes report again.
type WindowOpened struct{}

// WindowClosed says that probes have gone out until the next window.
type WindowClosed struct {
	Windows  uint64  // that have been closed
	Overhead float64 // what tracing has taken so far, as a share of the process's own CPU time
}

// SitesCounted says that the hits of some sites were counted between windows.
type SitesCounted struct {
	Sites int
	Hits  uint64
	Used  time.Duration // CPU time of the process meanwhile
	Cost  time.Duration // of that, what the hits took
}

// SnapshotWritten says that a snapshot was written, and that the recording goes on.
type SnapshotWritten struct{ Path string }

// SnapshotFailed says that a snapshot could not be written in the middle of the recording, where
// the one at its end may be, or that the raw trace ends early.
type SnapshotFailed struct{ Err error }

// DebugInfoMissing says what of an image's debug information is passed over, once for each image.
type DebugInfoMissing source.Missing

// Progress comes several times a second. Its functions may be called until the handler returns.
type Progress struct {
	Status func() Status
	// Snapshot copies what has been recorded, which takes time linear in the grammars. complete
	// makes a snapshot of it, and may be called at any time and by another goroutine.
	Snapshot func() (complete func() (*wpp.Snapshot, error))
}

// A Status is how far a recording has come.
type Status struct {
	Duration       time.Duration
	Paths          uint64        // recorded
	Rules, Symbols uint64        // of the grammars
	Lost           uint64        // events
	Ring           float64       // how full the buffer is that the kernel writes to, from 0 to 1
	Windows        uint64        // 0: all is traced
	Overhead       float64       // with a budget: what tracing took, as a share of its own time
	InWindow       bool          // one is open that may hold the process up
	HeldUp         time.Duration // the longest that a window with its changes has, at most
	Sampled        float64       // with windows: their share of the process's own CPU time
	SlowDown       overhead.Estimate
	SlowDownKnown  bool
	Hottest        string        // routine, by samples; "": none is known
	HottestShare   samples.Share // that it has, of the CPU time
}

// A Reason is why a recording ended, as the snapshot says it.
type Reason string

// The reasons.
const (
	Exited        Reason = "exited"
	Interrupted   Reason = "interrupted" // the context was canceled
	DurationOver  Reason = "duration"
	Exec          Reason = "exec" // the process runs another program
	SlowDown      Reason = "slow-down"
	GuardLost     Reason = "guard" // somebody has killed it
	Failed        Reason = "failure"
	stillRecorded Reason = ""
)

// IsEarly reports whether the recording ended before it was to, by neither its user nor the
// process.
func (r Reason) IsEarly() bool { return r == SlowDown || r == GuardLost || r == Failed }

// Ended says why the recording ends. Its probes go out after that.
type Ended struct {
	Reason   Reason
	Status   unix.WaitStatus   // Exited: how, if StatusKnown
	SlowDown overhead.Estimate // SlowDown: how much
	Err      error             // GuardLost and Failed: what happened

	StatusKnown bool
}
