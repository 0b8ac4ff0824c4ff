package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/decoder"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A recording is a trace in the making: the words of a session decoded and compressed, thread by thread. It belongs to one goroutine.
type recording struct {
	program  *program
	process  *target.Process
	session  *attach.Session
	decoder  *decoder.Decoder
	alphabet ops.Symbols
	threads  map[uint32]*thread // that live
	all      []*thread          // in the order in which they began
	only     map[uint32]bool    // thread ids; nil: all
	command  []string
	log      *slog.Logger
	began    time.Time
	ended    time.Time

	gauge      *gauge
	used       func() (target.Times, error) // what the process has used so far
	usedBefore target.Times                 // when the recording began
	last       sample                       // the last that could be taken
}

// A thread is the record of one thread.
type thread struct {
	id       uint32
	name     string
	words    *decoder.Thread
	grammar  *sequitur.Grammar
	started  uint64 // CLOCK_BOOTTIME, ns
	received uint64 // witnesses
	hits     uint64
	lost     uint64
	gaps     uint64
	stepped  uint64 // of the received, on single-stepped instructions
	last     bool   // the last witness was
}

func newRecording(p *program, process *target.Process, session *attach.Session, tids []int, log *slog.Logger) (*recording, error) {
	d, err := decoder.New(p.plan, log)
	if err != nil {
		return nil, err
	}
	r := &recording{program: p, process: process, session: session, decoder: d, threads: map[uint32]*thread{}, command: process.Command(), log: log}
	for _, id := range tids {
		if r.only == nil {
			r.only = map[uint32]bool{}
		}
		r.only[uint32(id)] = true
	}
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
	return r.session.Enable(fromStart)
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
	}
}

// take decodes a batch.
func (r *recording) take(b wire.Batch) {
	if r.only != nil && !r.only[b.Thread] {
		return
	}
	t := r.threads[b.Thread]
	if t == nil || t.started != b.Started { // numbers are used again
		t = r.beginThread(b.Thread, b.Started)
	}
	if b.Lost > t.lost {
		t.gap(b.Lost - t.lost)
	}
	t.hits = b.Hits
	for i := range b.Len() {
		w := b.Word(i)
		t.count(w, r.program.plan)
		t.words.Word(w)
	}
}

func (r *recording) beginThread(id uint32, started uint64) *thread {
	t := &thread{id: id, started: started, name: r.process.ThreadName(int(id)), grammar: sequitur.New()}
	t.words = r.decoder.Thread(ops.NewRecorder(&r.alphabet, t.grammar.Append))
	r.threads[id] = t
	i, _ := slices.BinarySearchFunc(r.all, t, func(a, b *thread) int {
		return cmp.Or(cmp.Compare(a.started, b.started), cmp.Compare(a.id, b.id))
	})
	r.all = slices.Insert(r.all, i, t)
	return t
}

func (t *thread) gap(lost uint64) {
	t.words.Gap(lost)
	t.lost += lost
	t.gaps++
}

func (t *thread) count(w wire.Word, p *plan.Plan) {
	n := uint64(1)
	switch w.Kind() {
	case wire.Witness:
		t.last = w.Site() < len(p.Sites) && p.Sites[w.Site()].Stepped
	case wire.Repeat:
		n = w.Value()
	default:
		return
	}
	t.received += n
	if t.last {
		t.stepped += n
	}
}

// finish detaches and takes what is left. The recording stays readable.
func (r *recording) finish(ctx context.Context) error {
	r.takeSample()
	r.ended = time.Now()
	if err := r.session.Detach(); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	if err := r.session.Flush(); err != nil {
		return err
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.addLosses()
	for _, t := range r.all {
		t.words.Close()
	}
	return nil
}

// addLosses adds what was lost last of each thread, which no batch came after to tell.
func (r *recording) addLosses() {
	for id, l := range r.session.Losses() {
		if r.only != nil && !r.only[id] {
			continue
		}
		t := r.threads[id]
		if t == nil {
			t = r.beginThread(id, math.MaxUint64) // nothing of it came through, not even when it began
		}
		if l.Lost > t.lost {
			t.hits = l.Hits
			t.gap(l.Lost - t.lost)
		}
	}
}
