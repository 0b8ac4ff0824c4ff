package values

import (
	"errors"
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
)

// A Thread makes values of what the hits of one thread have seen. It is a sink of the thread's
// operations, which it hands on.
type Thread struct {
	recorder *Recorder
	number   int // of the thread: see wet.ThreadsSection
	next     ops.Sink
	oracle   oracle
	walker   *wet.Walker
	queue    []step // symbols that have not been walked
	sited    int    // of these, those with sites, or marks
	failed   error
	ended    []*group   // of segments
	group    []*wet.Log // of segments that have ended since
	open     uint64     // bytes of these
	counted  uint64     // bytes that count among the recorder's
}

// A step is a symbol that is to be walked some times: a mark has no path.
type step struct {
	path  *path
	times uint64
	mark  ops.Mark
	n     uint64
	// of a gap: how many hits there had been of the thread before what comes next; else 0
	hits uint64
}

// ends reports whether the symbol says where a recovery ends: see oracle.Resync.
func (s *step) ends() bool { return s.path == nil || s.path.sites > 0 }

// leftOut has a log count what is not walked.
func (s *step) leftOut(log *wet.Log) {
	if s.path != nil {
		log.Ran(s.path.number, s.times)
	}
}

func newThread(r *Recorder, number int) *Thread {
	t := &Thread{recorder: r, number: number}
	t.oracle = oracle{recorder: r, thread: t}
	t.walker = wet.NewWalker(r.code, &t.oracle, nil)
	t.oracle.memory = t.walker.Memory()
	t.oracle.memory.Keep()
	t.failed = t.walker.Begin()
	return t
}

// EnterRoutine is for the decoder, as the other methods of ops.Sink are.
func (t *Thread) EnterRoutine(routine int, by ops.Caller) { t.next.EnterRoutine(routine, by) }

// LeaveRoutine: see ops.Sink.
func (t *Thread) LeaveRoutine() { t.next.LeaveRoutine() }

// NewPath: see ops.Sink.
func (t *Thread) NewPath(routine int, number, times uint64) {
	t.next.NewPath(routine, number, times)
	if t.failed != nil {
		t.oracle.log.Ran(t.recorder.symbols.Symbol(routine, number), times)
		return
	}
	p, err := t.recorder.path(routine, number)
	if err != nil {
		t.failed = err
		return
	}
	t.add(step{path: p, times: times})
}

// Mark: see ops.Sink.
func (t *Thread) Mark(m ops.Mark, n uint64) {
	t.next.Mark(m, n)
	if t.failed != nil {
		return
	}
	t.add(step{mark: m, n: n, times: 1})
}

// Gap says, directly behind the mark of a gap, how many hits there had been of the thread, the lost
// ones included, before what comes next.
func (t *Thread) Gap(hits uint64) {
	if t.failed != nil {
		return
	}
	t.add(step{times: 1, hits: hits + 1})
}

func (t *Thread) add(s step) {
	t.queue = append(t.queue, s)
	if s.ends() {
		t.sited++
	}
	t.walk(false)
}

// walk walks along the symbols, but for the last one with a site, and for those behind it: what the
// next hit shows is not there yet; all: also along these.
func (t *Thread) walk(all bool) {
	done := 0
	for ; done < len(t.queue) && t.failed == nil && (t.sited > 1 || all); done++ {
		s := &t.queue[done]
		t.oracle.ahead = t.queue[done:]
		for ; s.times > 0 && t.failed == nil; s.times-- {
			switch {
			case s.path != nil:
				t.oracle.unseen = s.times == 1 && !t.isFollowed(done)
				t.failed = t.walker.Path(&s.path.Path)
				t.oracle.log.Ran(s.path.number, 1)
			case s.hits > 0:
				t.oracle.hits, t.oracle.astray = s.hits-1, false
				continue
			default:
				t.failed = t.walker.Mark(s.mark, s.n)
			}
			t.oracle.log.Walked()
		}
		if s.ends() {
			t.sited--
		}
		s.leftOut(&t.oracle.log)
	}
	t.queue = append(t.queue[:0], t.queue[done:]...)
	t.oracle.ahead = nil
}

// isFollowed reports whether a hit comes behind a symbol of the queue, and no mark before it.
func (t *Thread) isFollowed(at int) bool {
	for i := at + 1; i < len(t.queue); i++ {
		if s := &t.queue[i]; s.ends() {
			return s.path != nil
		}
	}
	return false
}

// End says that nothing comes any more, and lets go of what only a thread that goes on needs.
func (t *Thread) End() {
	t.recorder.look()
	t.walk(true)
	if t.failed == nil && t.oracle.memory.IsTooLarge() {
		t.oracle.lose()
	}
	if t.failed == nil {
		t.failed = errEnded
	}
	t.recorder.end(t.soFar(), t)
	if len(t.group) > 0 {
		t.recorder.encode(t)
	}
	t.queue, t.walker, t.oracle = nil, nil, oracle{states: queue{damaged: t.oracle.states.damaged}}
	t.count()
}

// errEnded keeps what comes late from being walked.
var errEnded = errors.New("the thread has ended")

// soFar copies the log.
func (t *Thread) soFar() *wet.Log {
	log := t.oracle.soFar()
	for i := range t.queue {
		t.queue[i].leftOut(log)
	}
	return log
}

// sections is those of Recorder.Sections that are the thread's.
func (t *Thread) sections() (complete func() []*wpp.Section) {
	all, last := slices.Clip(t.ended), slices.Clone(t.group)
	if !errors.Is(t.failed, errEnded) {
		last = append(last, t.soFar())
	}
	return func() (list []*wpp.Section) {
		for _, ended := range all {
			list = append(list, ended.wait()...)
		}
		if len(last) > 0 {
			data := wet.Encode(last)
			list = append(list, data.Sections(t.number)...)
		}
		return list
	}
}

// Err is why not all values of the thread are kept; nil: they are.
func (t *Thread) Err() error {
	if errors.Is(t.failed, errEnded) {
		return nil
	}
	return t.failed
}

func (t *Thread) take(b wire.Batch) {
	if t.failed == nil {
		t.oracle.states.add(b.RawStates())
		t.count()
	}
}

// count counts the memory that the thread takes anew, but for segments that have ended.
func (t *Thread) count() {
	n := t.oracle.log.Bytes() + uint64(cap(t.oracle.states.data))
	if t.oracle.memory != nil {
		n += t.oracle.memory.Bytes()
	}
	t.recorder.bytes += n - t.counted
	t.counted = n
}
