package spill

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/text"
)

// Limits bound memory, in bytes, and how much of a stream is read at once.
type Limits struct {
	Thread uint64 // of each thread's grammar; 0: no limit but All
	All    uint64 // of all grammars together, and Other; 0: no limit
	Other  func() uint64
	// Symbols is how many symbols a segment derives, some more in a run of one, so that a part of
	// the stream is read without the rest; 0: no limit.
	Symbols uint64
}

// Tables copies what a recording knows of the program so far, and of the symbols from a number on,
// which is quick, and leaves the rest to complete, which may run while the recording goes on: it
// makes a snapshot without threads. to is how many symbols there are then.
type Tables func(from int) (to int, complete func() (*wpp.Snapshot, error))

// A Recording is the grammars of threads in the making. It belongs to one goroutine.
type Recording struct {
	draft  *store.Draft
	limits Limits
	tables Tables

	threads  []*Thread
	segments int
	used     uint64 // by the threads
	handed   int    // symbols that were handed to the draft
	job      *job   // the segment that is being coded; nil: none is
	err      error
}

// A job is a segment being coded.
type job struct {
	thread *Thread
	at     int    // index in the thread's segments
	bytes  uint64 // that it takes
	done   chan struct{}
	coded  *wpp.Segment
	err    error
}

// mostThread is what a thread's grammar takes at most, whatever the limits: some 14 million
// symbols, so that whoever asks needs little memory for a segment.
const mostThread = 512 << 20

// New returns a recording without threads that spills into a draft. Without limits it needs no
// draft, and where there is none, they must not be reached.
func New(draft *store.Draft, limits Limits) *Recording {
	if limits.Other == nil {
		limits.Other = func() uint64 { return 0 }
	}
	if draft != nil && (limits.Thread == 0 || limits.Thread > mostThread) {
		limits.Thread = mostThread
	}
	return &Recording{draft: draft, limits: limits}
}

// Begin says where the tables come from. It is called before there is a thread.
func (r *Recording) Begin(tables Tables) { r.tables = tables }

// AddOther adds to what counts as used besides the grammars.
func (r *Recording) AddOther(bytes func() uint64) {
	before := r.limits.Other
	r.limits.Other = func() uint64 { return before() + bytes() }
}

// Err returns the first error of spilling, after which nothing is spilled any more: whoever records
// gives up.
func (r *Recording) Err() error { return r.err }

// Finish writes the recording's snapshot, whose grammars Copy has made, to the draft's place, and
// is over. See store.Draft.
func (r *Recording) Finish(ctx context.Context, s *wpp.Snapshot) error {
	r.wait()
	if r.err != nil {
		return r.err
	}
	return r.draft.Finish(ctx, s)
}

// Abandon gives the recording up, unless it is finished. What there is of the draft is removed,
// unless it is what spilling has left that failed.
func (r *Recording) Abandon() error {
	r.wait()
	if r.err != nil || r.draft == nil {
		return nil
	}
	return r.draft.Discard()
}

// Thread begins a thread.
func (r *Recording) Thread(tid int, name string) *Thread {
	t := &Thread{TID: tid, Name: name, recording: r, number: len(r.threads), until: lookEvery}
	r.threads = append(r.threads, t)
	return t
}

// leastSpilled is the size below which a grammar is not worth a segment.
const leastSpilled = 16 << 10

// leastGrammars is what must be left for grammars, or a quarter of all where that is less.
const leastGrammars = 32 << 20

// fail ends the recording. What was spilled stays in the draft's file.
func (r *Recording) fail(err error) {
	r.wait()
	if r.draft != nil {
		err = r.draft.Fail(err)
	}
	r.err = cmp.Or(r.err, err)
}

// fit spills until the limits are kept, or nothing is left that is worth it.
func (r *Recording) fit(t *Thread) {
	if r.err != nil {
		return
	}
	if other := r.other(); r.limits.All > 0 && other+min(r.limits.All/4,
		leastGrammars) > r.limits.All {
		r.fail(fmt.Errorf("record within %d MiB of memory: what was met of the program and %s "+
			"take %d MiB of that: allow more memory",
			r.limits.All>>20, text.Count(r.segments, "segment"), other>>20))
		return
	}
	if r.limits.Thread > 0 && t.bytes > r.limits.Thread || t.isLong() {
		r.wait()
		r.spill(t)
	}
	for r.limits.All > 0 && r.err == nil && r.total() > r.limits.All {
		if r.job != nil {
			r.wait()
			continue
		}
		largest := t
		for _, x := range r.threads {
			if x.bytes > largest.bytes {
				largest = x
			}
		}
		if largest.bytes < leastSpilled {
			return
		}
		r.spill(largest)
	}
}

// other is what counts as used besides grammars: each thread and each segment takes some, too.
func (r *Recording) other() uint64 {
	const eachThread, eachSegment = 400, 700
	return r.limits.Other() + eachThread*uint64(len(r.threads)) + eachSegment*uint64(r.segments)
}

func (r *Recording) total() uint64 {
	total := r.used + r.other()
	if r.job != nil {
		total += r.job.bytes
	}
	return total
}

// poll takes notice of a job that is done.
func (r *Recording) poll() {
	if r.job == nil {
		return
	}
	select {
	case <-r.job.done:
		r.wait()
	default:
	}
}

// wait waits for the job, if there is one.
func (r *Recording) wait() {
	j := r.job
	if j == nil {
		return
	}
	<-j.done
	r.job = nil
	j.thread.segments[j.at] = j.coded
	if r.err == nil {
		r.err = j.err
	}
}

// spill has what a thread has in memory coded and written, and its memory freed. There must be no
// job.
func (r *Recording) spill(t *Thread) {
	bodies := t.close()
	handed, complete := r.tables(r.handed)
	r.job = &job{thread: t, at: len(t.segments), bytes: codingBytes(bodies, handed-r.handed),
		done: make(chan struct{})}
	r.handed = handed
	t.segments = append(t.segments, nil)
	r.segments++
	go r.job.code(r.draft, wpp.Thread{TID: t.TID, Name: t.Name}, bodies, complete)
}

// codingBytes is about what coding a grammar takes: its bodies, what they become, and the tables of
// the coder; and the part of the alphabet that comes before it.
func codingBytes(bodies [][]uint32, alphabet int) uint64 {
	const fixed, eachSymbol, eachRule, eachOfAlphabet = 12 << 20, 8, 250, 100
	n := uint64(fixed + eachRule*len(bodies) + eachOfAlphabet*alphabet)
	for _, body := range bodies {
		n += eachSymbol * uint64(len(body))
	}
	return n
}

// code codes and writes a segment. Where that fails, the segment stays in memory.
func (j *job) code(draft *store.Draft, thread wpp.Thread, bodies [][]uint32,
	complete func() (*wpp.Snapshot, error)) {
	defer close(j.done)
	if thread.Grammar, j.err = wpp.NewGrammar(bodies); j.err != nil {
		j.err = fmt.Errorf("copy the record of thread %d: %w", thread.TID, j.err)
		return
	}
	tables, err := complete()
	if err == nil {
		j.coded, err = draft.Spill(tables, j.thread.number, thread)
	}
	if err != nil {
		j.coded, j.err = wpp.NewSegment(thread.Grammar), err
		return
	}
	if thread.Grammar, tables, bodies, complete = nil, nil, nil, nil; j.bytes > muchFreed {
		debug.FreeOSMemory()
	}
}

// muchFreed is how much must be free for that to be worth a collection at once.
const muchFreed = 32 << 20
