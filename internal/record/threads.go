package record

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/raw"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/decoder"
	"wpptrace/internal/overlapping"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/rawtrace"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// threads are the threads of a process, with what is recorded of each: the events of a session,
// decoded and compressed. They belong to one goroutine.
type threads struct {
	process  *target.Process
	session  *attach.Session
	plan     *plan.Plan
	decoder  *decoder.Decoder
	streams  *spill.Recording
	alphabet *ops.Symbols
	counter  *pathprofile.Counter // of a path profile; nil: streams keep the order
	overlaps *overlapped.Counter  // of overlapping paths besides; nil: they are not counted
	entries  *entries.Counter     // of how activations began, where streams keep the order
	raw      *rawtrace.Trace      // nil: none is written
	values   *valued              // nil: none are recorded
	controls *overhead.Controls   // that count hits; nil: none do
	recorded []uint64             // hits by site; shorter: none of the rest
	only     map[uint32]bool      // thread ids; nil: all
	byID     map[uint32]*thread   // the last that had the number
	all      []*thread            // in the order in which they began
	// of a path profile: threads that are in all no more, but for the first one, their sum
	forgotten uint64
	stray     strayThreads
	windows   uint64 // that have ended
}

// listen takes what comes until the deadline.
func (s *threads) listen(deadline time.Time) error {
	for {
		b, err := s.session.Read(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(b)
		if err := s.streams.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return nil
		}
	}
}

// drain takes what is in the ring buffer.
func (s *threads) drain(ctx context.Context) error {
	for {
		b, err := s.session.Read(time.Now())
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		s.take(b)
		if err := s.streams.Err(); err != nil {
			return err
		}
	}
}

// take decodes a batch.
func (s *threads) take(b wire.Batch) {
	if !s.records(b.Thread) {
		return
	}
	if b.HasStates() {
		if s.values != nil {
			s.values.Take(b)
		}
		return
	}
	t := s.byID[b.Thread]
	if t == nil || t.started != b.Started { // numbers are used again
		if i, ok := s.find(b.Thread, b.Started); ok { // what it has left comes late
			t = s.all[i]
		} else if !s.decoder.HasRun(b) {
			return
		} else {
			t = s.begin(b.Thread, b.Started)
		}
	}
	t.take(b, s)
	if s.counter != nil && t.ended && t.lost == 0 {
		s.forget(t)
	}
}

// keep has streams kept in order, with what these do not say.
func (s *threads) keep() { s.entries = overlapping.NewEntries(s.alphabet, s.plan, s.decoder) }

// count has paths counted, and not kept in order, and overlapping ones of so many predicates
// besides.
func (s *threads) count(overlap int) {
	s.counter = pathprofile.NewCounter(s.alphabet)
	if overlap > 0 {
		s.overlaps = overlapping.NewCounter(overlap-1, s.alphabet, s.plan, s.decoder)
	}
	s.all = []*thread{{}} // which began before any
}

// forget lets go of a thread of a path profile that has ended, of which all is known: there may be
// any number of them, one after the other.
func (s *threads) forget(t *thread) {
	i, _ := s.find(t.id, t.started)
	s.all = slices.Delete(s.all, i, i+1)
	if s.byID[t.id] == t {
		delete(s.byID, t.id)
	}
	sum := s.all[0]
	sum.hits, sum.stepped = sum.hits+t.hits, sum.stepped+t.stepped
	sum.taken, sum.received = sum.taken+t.taken, sum.received+t.received
	sum.amiss += t.amiss
	s.forgotten++
}

// counts are what a path profile has counted so far.
func (s *threads) counts() *pathprofile.Counts {
	c := s.counter.Counts()
	c.Runs, c.Threads = 1, s.forgotten+uint64(len(s.all)-1)
	return c
}

// overlapping is what has been counted of overlapping paths so far; nil: they are not.
func (s *threads) overlapping() (*overlapped.Profile, error) {
	if s.overlaps == nil {
		return nil, nil
	}
	return s.overlaps.Profile()
}

// countSite counts hits of a site that have been reported.
func (s *threads) countSite(site int, hits uint64) {
	s.controls.Count(site, hits)
	if site >= len(s.recorded) {
		s.recorded = append(s.recorded, make([]uint64, len(s.plan.Sites)-len(s.recorded))...)
	}
	s.recorded[site] += hits
}

// records reports whether a thread is to be recorded.
func (s *threads) records(id uint32) bool { return s.only == nil || s.only[id] }

func (s *threads) begin(id uint32, started uint64) *thread {
	t := &thread{id: id, started: started, name: s.process.ThreadName(int(id))}
	var sink ops.Sink = s.counter
	switch {
	case s.overlaps != nil:
		sink = overlapping.Sink(s.alphabet, s.counter, s.overlaps)
	case s.counter == nil:
		t.stream = s.streams.Thread(int(id), t.name)
		sink = s.entries.Recorder(t.stream.Append)
	}
	if s.values != nil {
		t.values = s.values.Thread(id, started, sink)
		sink = t.values
	}
	if s.raw != nil {
		sink = s.raw.Besides(sink, raw.Thread{TID: int(id), Start: started, Name: t.name})
	}
	t.decoder = s.decoder.Thread(sink, int(id) == s.process.PID)
	if last := s.byID[id]; last == nil || last.started < started {
		s.byID[id] = t
	}
	i, _ := s.find(id, started)
	s.all = slices.Insert(s.all, i, t)
	return t
}

// find returns where a thread is in s.all, or would be.
func (s *threads) find(id uint32, started uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(s.all, started, func(t *thread, started uint64) int {
		return cmp.Or(cmp.Compare(t.started, started), cmp.Compare(t.id, id))
	})
}

// detach takes the probes out, and what the threads have not sent, even if the probes could not be
// asked to go: they report nothing any more.
func (s *threads) detach(ctx context.Context) error { return s.takeRest(ctx, s.session.Detach()) }

// takeRest takes what threads have not sent whose probes report nothing any more. left is why some
// of these may be left in.
func (s *threads) takeRest(ctx context.Context, left error) error {
	if err := s.drain(ctx); err != nil {
		return errors.Join(left, err)
	}
	if err := s.session.Flush(ctx); err != nil {
		return errors.Join(left, err)
	}
	return errors.Join(left, s.drain(ctx))
}

// addLosses adds what was lost last of each thread, after which no batch came. A thread whose end
// came through has lost nothing since. One that is not there any more, and of which nothing came
// through, is met here and ended at once: there may be tens of thousands.
func (s *threads) addLosses() error {
	losses, err := s.session.Counters().Losses()
	if err != nil {
		return err
	}
	for _, l := range losses {
		if !s.records(l.Thread) {
			continue
		}
		if t, isNew := s.addLoss(l); isNew && !s.lives(t) {
			t.end()
		}
	}
	return nil
}

// addLoss returns the thread that has the loss. isNew says that nothing else is known of it.
func (s *threads) addLoss(l attach.Loss) (t *thread, isNew bool) {
	i, ok := s.find(l.Thread, l.Started)
	if !ok {
		s.begin(l.Thread, l.Started)
	}
	t = s.all[i]
	switch {
	case l.Lost <= t.lost:
	case t.decoder == nil:
		t.amiss++
	default:
		t.hits = l.Hits
		t.gap(l.Lost-t.lost, l.Hits)
		t.skipped = true
	}
	return t, !ok
}

// leave marks in each thread that what comes next is not known, and lets go of those that have
// ended.
func (s *threads) leave() error {
	if err := s.addLosses(); err != nil { // while it is known of threads that have ended
		return err
	}
	strays, err := s.strays()
	if err != nil {
		return err
	}
	for _, t := range strays {
		t.end()
	}
	s.windows++
	for _, t := range s.all {
		if t.decoder != nil {
			t.leave(s.windows)
		}
	}
	if s.counter != nil {
		s.counter.EndWindow()
	}
	return nil
}

// end lets go of what threads that go on need.
func (s *threads) end() {
	for _, t := range s.all {
		if t.decoder != nil {
			t.end()
		}
	}
}

// hits sums up the hits so far, and of them those single-stepped. The kernel is asked for those
// that have not been reported yet, which may be many where the same one comes again and again, and
// for those that never are: while probes go in and out, or of probes that only count, or only take
// values.
func (s *threads) hits() (hits, stepped uint64) {
	if m, err := s.session.Counters().Metrics(); err == nil {
		hits = m.Unreported + m.ValueHits
	}
	for _, t := range s.all {
		hits += t.hits
		stepped += t.stepped
	}
	live, _ := s.process.Threads() // none, if the process has ended
	for _, tid := range live {
		h, err := s.session.Counters().Hits(tid)
		if err != nil {
			continue
		}
		if t := s.byID[uint32(tid)]; t != nil {
			h.Made -= min(h.Made, t.hits)
		}
		hits += h.Made
		if h.Repeating > 0 && s.plan.Sites[h.Site].Stepped {
			stepped += h.Repeating
		}
	}
	return hits, stepped
}

// lost counts the events of the recorded threads that were lost. Where that is all threads, the
// kernel counts those too that nothing is known of.
func (s *threads) lost(m attach.Metrics) (n uint64) {
	for _, t := range s.all {
		n += t.lost
	}
	if s.only == nil {
		n = max(n, m.LostHits)
	}
	return n
}

// gaps counts the places where something was lost.
func (s *threads) gaps() (n uint64) {
	for _, t := range s.all {
		n += t.gaps
	}
	return n
}

// addFigures adds what threads have reported.
func (s *threads) addFigures(f *wpp.Figures) {
	for _, t := range s.all {
		f.Hits += t.hits
		f.HitsSingleStep += t.stepped
		f.Events += t.taken
		f.Anomalies += t.amiss
	}
	misfits, _ := s.decoder.Anomalies()
	f.Anomalies += misfits
}
