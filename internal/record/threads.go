package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"time"
	"unsafe"
	"wpptrace/internal/record/overhead"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/spill"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/loader/attach"
	"wpptrace/loader/target"
)

// A recording is a trace in the making: the words of a session decoded and compressed, thread by
// thread. It belongs to one goroutine.
type recording struct {
	program  *program
	process  *target.Process
	session  *attach.Session
	decoder  *decoder.Decoder
	alphabet ops.Symbols
	streams  *spill.Recording
	symbols  []wpp.Symbol       // of the alphabet, as far as snapshots have needed them
	threads  map[uint32]*thread // by number: the last that had it
	all      []*thread          // in the order in which they began
	straying straying
	only     map[uint32]bool // thread ids; nil: all
	raw      *rawTrace       // nil: none is written
	command  []string
	log      *slog.Logger
	troubles *debugTroubles
	began    time.Time
	ended    time.Time
	endedOn  occasion // "": it goes on

	meter      *overhead.Meter
	windows    *windows                     // nil: there is no budget, and probes stand all the time
	used       func() (target.Times, error) // what the process has used so far
	usedBefore target.Times                 // when the recording began
	first      overhead.Sample              // when the recording began
	last       overhead.Sample              // the last that could be taken
}

func newRecording(p *program, process *target.Process, session *attach.Session, streams *spill.Recording, tids []int, log *slog.Logger) (*recording, error) {
	d, err := decoder.New(p.plan, log)
	if err != nil {
		return nil, err
	}
	r := &recording{program: p, process: process, session: session, decoder: d, streams: streams, threads: map[uint32]*thread{}, command: process.Command(), log: log, troubles: newDebugTroubles(log)}
	r.tellPassedOver(p.image)
	for _, id := range tids {
		if r.only == nil {
			r.only = map[uint32]bool{}
		}
		r.only[uint32(id)] = true
	}
	streams.AddOther(func() uint64 {
		return (r.alphabet.Bytes() + uint64(cap(r.symbols))*uint64(unsafe.Sizeof(wpp.Symbol{}))) * 3 / 2
	})
	streams.Begin(r.tables)
	return r, nil
}

// begin starts the reports of the session. fromStart says that the process has not run yet.
func (r *recording) begin(fromStart bool) error {
	used, err := r.used()
	if err != nil {
		return gone(r.process, err)
	}
	r.usedBefore, r.began = used, time.Now()
	r.takeSample()
	r.first = r.last
	if r.windows != nil {
		r.account() // for what the probes cost before they report; it is no part of a window
	}
	r.windows.begin()
	if err := r.session.Enable(fromStart); err != nil {
		return err
	}
	return r.raw.place()
}

// listen takes what comes until the deadline.
func (r *recording) listen(deadline time.Time) error {
	for {
		b, err := r.session.Read(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		r.take(b)
		if err := r.streams.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return nil
		}
	}
}

// drain takes what is in the ring buffer.
func (r *recording) drain(ctx context.Context) error {
	for {
		b, err := r.session.Read(time.Now())
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		r.take(b)
		if err := r.streams.Err(); err != nil {
			return err
		}
	}
}

// take decodes a batch.
func (r *recording) take(b wire.Batch) {
	if r.only != nil && !r.only[b.Thread] {
		return
	}
	t := r.threads[b.Thread]
	if t == nil || t.started != b.Started { // numbers are used again
		if i, ok := r.find(b.Thread, b.Started); ok { // what it has left comes late
			t = r.all[i]
		} else if !r.decoder.HasRun(b) {
			return
		} else {
			t = r.beginThread(b.Thread, b.Started)
		}
	}
	t.take(b, rareOf(r.windows))
}

func (r *recording) beginThread(id uint32, started uint64) *thread {
	t := &thread{id: id, started: started, name: r.process.ThreadName(int(id))}
	t.stream = r.streams.Thread(int(id), t.name)
	var sink ops.Sink = ops.NewRecorder(&r.alphabet, t.stream.Append)
	if r.raw != nil {
		sink = r.raw.besides(sink, t)
	}
	t.words = r.decoder.Thread(sink, int(id) == r.process.PID)
	if last := r.threads[id]; last == nil || last.started < started {
		r.threads[id] = t
	}
	i, _ := r.find(id, started)
	r.all = slices.Insert(r.all, i, t)
	return t
}

// find returns where a thread is in r.all, or would be.
func (r *recording) find(id uint32, started uint64) (i int, ok bool) {
	return slices.BinarySearchFunc(r.all, started, func(t *thread, started uint64) int {
		return cmp.Or(cmp.Compare(t.started, started), cmp.Compare(t.id, id))
	})
}

// detach takes the probes out, and what the threads have not sent, even if the probes could not be
// asked to go: they report nothing any more.
func (r *recording) detach(ctx context.Context) error {
	left := r.session.Detach()
	if err := r.drain(ctx); err != nil {
		return errors.Join(left, err)
	}
	if err := r.session.Flush(ctx); err != nil {
		return errors.Join(left, err)
	}
	return errors.Join(left, r.drain(ctx))
}

// finish detaches and takes what is left. The recording stays readable, after an error too, as far
// as it goes.
func (r *recording) finish(ctx context.Context) error {
	r.takeSample()
	r.ended = time.Now()
	if p := r.windows; p != nil {
		r.account()
		defer p.relax()
	}
	err := errors.Join(r.detach(ctx), r.addLosses())
	if !r.process.Alive() {
		r.takeSample() // some of its hits have come but now
	}
	for _, t := range r.all {
		if t.words != nil {
			t.end()
		}
	}
	return err
}

// addLosses adds what was lost last of each thread, which no batch came after to tell. A thread
// whose end came through has lost nothing since. One that is not there any more, and of which nothing
// came through, is met here and ended at once: there may be tens of thousands.
func (r *recording) addLosses() error {
	losses, err := r.session.Losses()
	if err != nil {
		return err
	}
	for _, l := range losses {
		if r.only != nil && !r.only[l.Thread] {
			continue
		}
		if t, isNew := r.addLoss(l); isNew && !r.lives(t) {
			t.end()
		}
	}
	return nil
}

// addLoss returns the thread that has the loss. isNew says that nothing else is known of it.
func (r *recording) addLoss(l attach.Loss) (t *thread, isNew bool) {
	i, ok := r.find(l.Thread, l.Started)
	if !ok {
		r.beginThread(l.Thread, l.Started)
	}
	t = r.all[i]
	switch {
	case l.Lost <= t.lost:
	case t.words == nil:
		t.amiss++
	default:
		t.hits = l.Hits
		t.gap(l.Lost - t.lost)
		t.skipped = true
	}
	return t, !ok
}
