package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record"
	"wpptrace/internal/remedy"
	"wpptrace/loader/followfork"
	"wpptrace/loader/guard"
	"wpptrace/loader/privilege"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// Check fails where processes cannot be followed: where they could be stopped, but not let go on,
// for they may become another user's; and where probes in one are in others too.
func Check() error {
	if err := uprobe.Detect().SupportsFollow(); err != nil {
		return remedy.Errorf(remedy.NoFollow, "follow processes: %w", err)
	}
	if !privilege.Has(cap.KILL) {
		return remedy.Errorf(remedy.RootOrNoFollow, "follow processes: no CAP_KILL")
	}
	return nil
}

// ErrForOne says that an option is for one process: each recording would replace what another has
// written, or have what is there once.
var ErrForOne = errors.New("that is for the recording of one process: leave it out")

// check fails where options ask for what several recordings cannot have.
func check(o record.Options) error {
	if _, err := o.Complete(); err != nil {
		return err
	}
	for _, option := range []struct {
		name  string
		given bool
	}{
		{"Raw", o.Raw != ""}, {"Threads", len(o.Threads) > 0},
		{"Selection.Libraries", len(o.Selection.Libraries) > 0}, {"Overhead", o.Overhead > 0},
		{"StopWhenFull", o.StopWhenFull},
	} {
		if option.given {
			return fmt.Errorf("follow processes with %s: %w", option.name, ErrForOne)
		}
	}
	return nil
}

// Run is record.Run of a process and of those that it starts. The options are those of the first
// one; its memory and ring buffer are for all, its duration is that of all. Snapshots of others go
// to files beside the first's, with the process's number in their names. The handler may be called
// by several goroutines, but by one at a time. A result beside an error holds what is known all the
// same.
func Run(ctx context.Context, o record.Options, handle func(Event)) (*Result, error) {
	if handle == nil {
		handle = func(Event) {}
	}
	if err := check(o); err != nil {
		return nil, record.KillUnstarted(o.Child, err)
	}
	r, err := start(ctx, o, handle)
	if err != nil {
		return nil, record.KillUnstarted(o.Child, err)
	}
	defer r.close()
	if o.Child != nil {
		o.Child.Release()
	}
	return r.run(ctx)
}

// start prepares and begins to record the first process.
func start(ctx context.Context, o record.Options, handle func(Event)) (*recorder, error) {
	if o.Abort == nil {
		o.Abort = context.Background()
	}
	r, err := newRecorder(o, handle)
	if err != nil {
		return nil, err
	}
	if err = ctx.Err(); err != nil {
		err = record.ErrInterrupted
	} else {
		err = r.begin(o.Child != nil)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// A recorder records several processes. It belongs to one goroutine; each recording has another.
type recorder struct {
	options  record.Options
	handle   func(Event)
	shared   *shared
	follower *followfork.Follower
	began    time.Time

	first    *target.Process
	prepared *recording // of the first; nil: its program cannot be recorded
	running  *running
	waiting  []followfork.Started // of processes that stand
	paths    map[string]bool      // of snapshots
	missing  map[string]bool      // debug information that was reported missing
	totals   totals
}

// newRecorder prepares to record a process and those that it will start. When it fails nothing
// stays attached.
func newRecorder(o record.Options, handle func(Event)) (*recorder, error) {
	o.Selection.Others = true
	var mutex sync.Mutex
	r := &recorder{options: o, first: o.Process, running: newRunning(atOnce(o.Memory.All)),
		paths: map[string]bool{}, missing: map[string]bool{}}
	r.handle = func(e Event) {
		mutex.Lock()
		defer mutex.Unlock()
		if !r.isRepeated(e) {
			handle(e)
		}
	}
	if o.Child != nil {
		r.first = o.Child.Process
	}
	g, err := guard.Start(r.first)
	if err != nil {
		return nil, err
	}
	r.shared = &shared{guard: g}
	if r.follower, err = followfork.Load(g); err == nil {
		err = r.prepareFirst()
	}
	if err != nil {
		r.close()
		return nil, err
	}
	r.handle(Attached{})
	return r, nil
}

// isRepeated reports whether an event says that debug information is missing, as that of another
// process that runs the same program has.
func (r *recorder) isRepeated(e Event) bool {
	of, _ := e.(Of)
	missing, ok := of.Event.(record.DebugInfoMissing)
	if !ok {
		return false
	}
	text := fmt.Sprintf("%q %q %q", missing.Image, missing.Consequence, missing.Err)
	known := r.missing[text]
	r.missing[text] = true
	return known
}

// prepareFirst puts the probes into the first process. Where that cannot be recorded, those that it
// starts are all the same.
func (r *recorder) prepareFirst() error {
	o := r.optionsOf(r.first)
	o.Process, o.Child, o.Ring, o.Stands = r.options.Process, r.options.Child, r.options.Ring, false
	preparing := true
	made, err := r.prepare(o, func(e record.Event) bool {
		_, attached := e.(record.Attached)
		return preparing && !attached
	})
	preparing = false // of what happens later the same is handled as of the others
	r.prepared = made
	if cannot := (errUnrecordable{}); errors.As(err, &cannot) {
		r.leaveOut(r.first.PID, r.first.Name, cannot)
		return nil
	}
	return err
}

// Shares of one recording in what was given for all.
const (
	ringShare   = 16
	leastRing   = 64 << 10
	usualAtOnce = 16
)

// atOnce is how many recordings there may be at the same time, given the memory for all.
func atOnce(memory uint64) int {
	if memory == 0 {
		return usualAtOnce
	}
	return max(1, int(memory/record.LeastMemory))
}

// A TooManyError says that a process is not recorded, for as many are as there is memory for.
type TooManyError struct{ Most int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d are recorded at the same time, as many as there is memory for", e.Most)
}

// optionsOf are those of the recording of a process.
func (r *recorder) optionsOf(p *target.Process) record.Options {
	o := r.options
	o.Process, o.Child, o.Stands = p, nil, true
	o.Duration, o.Output, o.Shared = 0, r.pathOf(p), r.shared
	o.Ring = max(o.Ring/ringShare, min(o.Ring, leastRing))
	if o.Memory.All > 0 {
		o.Memory.All /= uint64(atOnce(o.Memory.All))
	}
	return o
}

// pathOf is where the next snapshot of a process goes: where nobody else's has.
func (r *recorder) pathOf(p *target.Process) string {
	path := cmp.Or(r.options.Output, record.SnapshotName(p))
	if r.options.Output != "" && p != r.first {
		path = numbered(r.options.Output, p.PID)
	}
	unique := path
	for n := 2; r.paths[unique]; n++ {
		unique = numbered(path, n)
	}
	return unique
}

// numbered puts a number before the extension.
func numbered(path string, n int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, ext), n, ext)
}

// prepare prepares to record a process. Of its events those are handled that are wanted, what debug
// information is missing, losses of snapshots, and early ends.
func (r *recorder) prepare(o record.Options, wanted func(record.Event) bool) (*recording, error) {
	p := o.Process
	if o.Child != nil {
		p = o.Child.Process
	}
	made := &recording{snapshot: make(chan struct{}, 1)}
	o.Snapshot = made.snapshot
	var err error
	made.recorder, err = record.Prepare(o, func(e record.Event) {
		end, isEnd := e.(record.Ended)
		_, isFailure := e.(record.SnapshotFailed)
		_, isMissing := e.(record.DebugInfoMissing)
		if wanted(e) || isFailure || isMissing || isEnd && end.Reason.IsEarly() {
			r.handle(Of{p.PID, p.Name, e})
		}
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// begin starts to record, and to follow.
func (r *recorder) begin(fromStart bool) error {
	r.began = time.Now()
	if pids := r.first.Descendants(); len(pids) > 0 {
		r.handle(NotFollowed{pids})
	}
	if err := r.follower.Follow(r.first); err != nil || r.prepared == nil {
		return err
	}
	return r.prepared.recorder.Begin(fromStart)
}

// run records until all processes have ended, or there is another reason to.
func (r *recorder) run(ctx context.Context) (*Result, error) {
	if err := r.confine(); err != nil {
		return nil, err
	}
	if r.prepared != nil {
		r.start(r.prepared)
	}
	reason, err := r.watch(ctx)
	if err == nil {
		r.handle(Ended{reason})
	}
	r.running.end(record.Cause(reason))
	err = errors.Join(err, r.follower.Unfollow())
	for r.running.count() > 0 {
		r.account(<-r.running.over)
	}
	if err := cmp.Or(err, r.totals.err, r.options.Abort.Err()); err != nil {
		return nil, err
	}
	return r.totals.result(r.follower.Dropped()), r.unguarded()
}

// unguarded is the error of recordings whose guard has been killed: all of them may have come to
// their ends without one.
func (r *recorder) unguarded() error {
	select {
	case <-r.shared.guard.Gone():
		return errors.New("record processes: their guard has been killed: what was recorded then " +
			"may lack its end")
	default:
		return nil
	}
}

// confine gives up what following does not take, of this process and of its guard.
func (r *recorder) confine() error {
	tracing := append(privilege.Probing(), cap.KILL)
	if err := r.shared.guard.Confine(append(tracing, cap.SYS_NICE)...); err != nil ||
		r.options.Confine == nil {
		return err
	}
	path := cmp.Or(r.options.Output, record.SnapshotName(r.first))
	return r.options.Confine([]string{path, store.Old(path)},
		append(tracing, cap.SYS_PTRACE, cap.DAC_READ_SEARCH)...)
}

// close frees everything; what is attached is detached, and who stands is let go.
func (r *recorder) close() {
	if r.prepared != nil && !r.paths[r.prepared.recorder.Path()] { // it was not started
		r.prepared.recorder.Close()
	}
	if r.follower != nil {
		r.follower.Close()
	}
	r.shared.close()
}
