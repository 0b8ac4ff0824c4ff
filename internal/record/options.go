package record

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/spill"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// Options say what is recorded, where it goes and what it may cost. One of Process and Child is
// needed; the zero value of everything else will do.
type Options struct {
	// Process is recorded from wherever it is now. It stays the caller's.
	Process *target.Process
	// Child is a command that has been started and stands before its first instruction. It is
	// recorded from there, and killed when the recording cannot begin. It stays the caller's, who
	// waits for its end.
	Child *target.Child
	// Stands: Process is stopped, and has only just begun its program. No load of it can be
	// measured.
	Stands bool
	// Threads are the threads to record; none: all.
	Threads []int
	// Selection says which routines are traced.
	Selection traced.Selection

	// Output is the snapshot's file; "": SnapshotName, of Unwritten in the directory for temporary
	// files. What was there becomes Output.old.
	Output string
	// Unwritten: no snapshot is written. What there is no memory for goes to a temporary
	// file in Output's directory all the same, which is removed.
	Unwritten bool
	// Raw is a file, or a pipe, that the raw trace goes to; "": there is none.
	Raw string
	// Counted: how often each path runs is counted, in memory that does not grow with that, and not
	// kept in order: the snapshot is a path profile, see package pathprofile. Memory bounds nothing
	// then.
	Counted bool
	// Overlap has overlapping paths counted besides, where paths are Counted, that go on for so
	// many predicates: one more than their degree, see package overlapped. 0: none are.
	Overlap int
	// Values has the values of all instructions recorded besides, in sections of the snapshot: see
	// package wet. Paths must not be Counted.
	Values bool
	// Tool is the recording program with its version, for the snapshot.
	Tool string

	// Duration is how long is recorded; 0: until the process exits.
	Duration time.Duration
	// SnapshotEvery is the time between snapshots; 0: there is one, at the end.
	SnapshotEvery time.Duration
	// Snapshot asks for a snapshot in the middle of the recording for each value that comes; nil:
	// none comes. Requests that come while one is being written get one more together.
	Snapshot <-chan struct{}
	// MaxSlowDown ends the recording when the process is slowed down more times; 0: nothing does.
	MaxSlowDown float64
	// Overhead is what probes may take, as a share of the process's own CPU time: where all of it
	// costs more, it is traced in windows that last Window. 0: there is no limit.
	Overhead float64
	Window   time.Duration
	// MaxStall is how long a window, with its probes going in and coming out, may hold the process
	// up: windows are shorter than Window where it takes that. 0: the usual time.
	MaxStall time.Duration

	// Ring is the size in bytes of the buffer between the kernel and the recording; 0: the usual
	// one.
	Ring int
	// StopWhenFull has the process stopped while that is full; else events are lost then.
	StopWhenFull bool
	// Memory bounds what is recorded, in memory; the rest goes to the snapshot's file meanwhile.
	Memory spill.Limits

	// Abort ends the recording at once and without a snapshot when it is done; nil: nothing does.
	Abort context.Context
	// Confine gives up all capabilities but those that the recording takes once it has begun; files
	// are those of the snapshot. nil: none is given up.
	Confine func(files []string, keep ...cap.Value) error
	// Log gets what is being done, and what is amiss; nil: nothing is logged.
	Log *slog.Logger

	// Shared is what recordings have in common that run at the same time; nil: this one runs alone.
	Shared Shared
	// ForkOfTraced says that the process is a fork of one that a recording of the same Shared has
	// traced.
	ForkOfTraced bool
}

// DefaultWindow is long enough for subpaths of any length that one would look at, and for what
// probes that go in and come out take to be a small part of it: many short windows say more of what
// a process does than a few long ones. One is shorter where MaxStall has it.
const DefaultWindow = 12 * time.Millisecond

// DefaultMaxStall is what few users of a service notice.
const DefaultMaxStall = 20 * time.Millisecond

// LeastMemory is what suffices for compressing anything, in bytes.
const LeastMemory = 64 << 20

// A Shared is what recordings have in common that run at the same time. It is used by one goroutine
// at a time.
type Shared interface {
	// Guard owns the probes of all.
	Guard() *guard.Guard
	// Load is traced.LoadOf, of a program that is recordable. The file stays the recording's. born:
	// see Options.
	Load(p *target.Process, exe *os.File, s traced.Selection, born bool) (*traced.Program, error)
	// Meter returns a meter of its own for a session.
	Meter(s *attach.Session, log *slog.Logger) *overhead.Meter
}

// alone is what a recording has that runs alone.
type alone struct{}

func (alone) Guard() *guard.Guard { return nil }

func (alone) Load(p *target.Process, exe *os.File, s traced.Selection,
	_ bool) (*traced.Program, error) {
	return traced.LoadOf(p, exe, s)
}

func (alone) Meter(s *attach.Session, log *slog.Logger) *overhead.Meter {
	return overhead.NewMeter(s, log)
}

// SnapshotName is where the snapshot of a process goes if it is not said.
func SnapshotName(p *target.Process) string {
	name := p.Comm
	if strings.ContainsAny(name, " /:") { // a process may call itself "tmux: server"
		name = p.File
	}
	return fmt.Sprintf("%s-%d.wpp", name, p.PID)
}

// Errors of options.
var (
	ErrNoProcess = errors.New("record: neither Process nor Child is given: set one of them")
	ErrOneFile   = errors.New("the raw trace goes where the snapshot does, or the trace or " +
		"snapshot before: name another file")
)

// Complete returns the options with what follows for what was not given. It fails where they ask
// for what cannot be, before anything is touched.
func (o Options) Complete() (Options, error) {
	if o.Child != nil {
		o.Process = o.Child.Process
	}
	if o.Process == nil {
		return o, ErrNoProcess
	}
	o = o.withDefaults()
	if collide(o.Raw, o.Output) {
		return o, fmt.Errorf("write raw trace %s and snapshot %s: %w", o.Raw, o.Output, ErrOneFile)
	}
	return o, nil
}

func (o Options) withDefaults() Options {
	if o.Output == "" {
		o.Output = SnapshotName(o.Process)
		if o.Unwritten {
			o.Output = filepath.Join(os.TempDir(), o.Output)
		}
	}
	if o.Unwritten {
		o.Snapshot, o.SnapshotEvery = nil, 0
	}
	switch {
	case o.Ring > 0:
	case o.Values:
		o.Ring = ValuesRing
	default:
		o.Ring = attach.DefaultRing
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.MaxStall == 0 {
		o.MaxStall = DefaultMaxStall
	}
	if o.Abort == nil {
		o.Abort = context.Background()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Shared == nil {
		o.Shared = alone{}
	}
	if o.Overhead > 0 {
		o.Selection.Windows = true
	}
	o.Selection.Values = o.Values
	return o
}

// limits are those of windows.
func (o *Options) limits() overhead.Limits {
	return overhead.Limits{Window: o.Window, Stall: o.MaxStall}
}

// used is what the process has used so far. What a command has used stays known after its end.
func (o *Options) used() (target.Times, error) {
	if o.Child != nil {
		return o.Child.Times()
	}
	return o.Process.Times()
}
