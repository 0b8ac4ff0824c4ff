package pathcount

import (
	"os"
	"time"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/internal/interesting"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/plan"
	"wpptrace/loader/tally"
	"wpptrace/loader/target"
)

// A Watch knows which routines run paths that none of some snapshots has, of those routines that
// the snapshots have run. It belongs to one goroutine.
type Watch struct {
	Probes   int
	Routines int // that are watched
	// LeftOut are routines that the snapshots have run and that are not watched: no probes tell
	// their paths apart.
	LeftOut int
	// HitsPerPath is what is expected by the snapshots; nil: they do not say.
	HitsPerPath *float64

	process *target.Process
	counted []*interesting.CountedRoutine
	session *tally.Session
	others  []uint64 // by routine
	cost    time.Duration
	hits    uint64        // when it was last looked
	cpu     time.Duration // then
}

// A Risen is a routine that has run more paths that no snapshot has.
type Risen struct {
	*plan.Routine
	Executions uint64 // of all of these, since the beginning: at least
}

// NewWatch chooses the probes, and has the kernel take the tables. Nothing has touched the process
// then. It returns a Watch without probes where nothing can be watched. The caller closes it,
// before the file and the process. Cost: that of reading the snapshots, and some ms a routine.
func NewWatch(p *target.Process, exe *os.File, selection traced.Selection,
	snapshots []string) (*Watch, error) {
	w := &Watch{process: p}
	program, err := traced.LoadOf(p, exe, selection)
	if err != nil {
		return nil, err
	}
	set, err := interesting.ReadAll(program.Plan, snapshots)
	if err != nil {
		return nil, err
	}
	chosen := set.Count(true)
	var routines []tally.Routine
	for i := range chosen.Routines {
		r := &chosen.Routines[i]
		if r.Answer == nil || r.Answer.Machine.Rest == nil || len(r.Answer.Unclear) > 0 ||
			!set.Knows(r.Routine) {
			w.LeftOut++
			continue
		}
		w.counted = append(w.counted, r)
		routines = append(routines, tally.Routine{Routine: r.Routine.Routine,
			Machine: r.Answer.Machine})
	}
	if len(routines) == 0 {
		return w, nil
	}
	tables, err := tally.Pack(routines)
	if err != nil {
		return nil, err
	}
	w.Probes, w.Routines = len(tables.Sites), len(routines)
	w.others = make([]uint64, len(routines))
	typical := attach.TypicalCost()
	w.cost = typical.Emulated
	if chosen.Counted > 0 {
		hits := chosen.Counted / chosen.Ran
		w.HitsPerPath = &hits
		w.cost += time.Duration(chosen.SteppedHits / chosen.Counted *
			float64(typical.Stepped-typical.Emulated))
	}
	w.session, err = tally.Load(p, program.Image, exe, tables)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Begin puts the probes in. fromStart says that the process has not run yet.
func (w *Watch) Begin(fromStart bool) error {
	if w.session == nil {
		return nil
	}
	if err := w.session.Attach(); err != nil {
		return err
	}
	if err := w.session.Enable(fromStart); err != nil {
		return err
	}
	w.cpu = w.cpuTime()
	return nil
}

// Next returns the routines that have run more others since it was last called. Cost: some us a
// thread and a thousand counters; 20 ms at most where threads are in the midst of paths.
func (w *Watch) Next() (list []Risen, err error) {
	const effort = 20 * time.Millisecond
	if w.session == nil {
		return nil, nil
	}
	others, err := w.session.Others(w.threads, w.others, effort)
	if err != nil {
		return nil, err
	}
	for i, n := range others {
		if n > w.others[i] {
			list = append(list, Risen{w.counted[i].Routine, n})
		}
	}
	w.others = others
	return list, nil
}

// Share is what the hits since it was last called are of the process's CPU time, at what hits
// usually cost; 0 where it hardly ran.
func (w *Watch) Share() (float64, error) {
	const least = 10 * time.Millisecond // the clock's resolution is of no matter then
	if w.session == nil {
		return 0, nil
	}
	cpu := w.cpuTime()
	if cpu-w.cpu < least {
		return 0, nil
	}
	hits, err := w.session.Hits(w.threads())
	if err != nil {
		return 0, err
	}
	cost := time.Duration(hits-min(hits, w.hits)) * w.cost
	share := float64(cost) / float64(cpu-w.cpu)
	w.hits, w.cpu = hits, cpu
	return share, nil
}

// cpuTime is 0 where the process has ended.
func (w *Watch) cpuTime() time.Duration {
	t, err := w.process.Times()
	if err != nil {
		return 0
	}
	return t.CPU
}

// threads are those of the process: none, when it has ended.
func (w *Watch) threads() []int {
	if !w.process.Alive() {
		return nil
	}
	list, err := w.process.Threads()
	if err != nil {
		return nil
	}
	return list
}

// Confine leaves the process that puts the probes in with those capabilities alone.
func (w *Watch) Confine(keep ...cap.Value) error {
	if w.session == nil {
		return nil
	}
	return w.session.Confine(keep...)
}

// Ended says why nothing is watched any more; nil: it is.
func (w *Watch) Ended() error {
	if w.session != nil && w.session.GuardDead() {
		return guard.ErrGone
	}
	return nil
}

// Close takes the probes out. It may be called again.
func (w *Watch) Close() error {
	if w.session == nil {
		return nil
	}
	s := w.session
	w.session, w.Probes = nil, 0
	return s.Close()
}
