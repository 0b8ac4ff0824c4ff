package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/decoder"
	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// A program is what is known of a target's executable before anything is attached.
type program struct {
	image *image.Image
	cfg   *cfg.Program
	plan  *plan.Plan
}

// loadProgram reads and plans an executable.
func loadProgram(f *os.File, name string, o plan.Options) (*program, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	im, err := image.Open(f, st.Size(), name)
	if err != nil {
		return nil, err
	}
	c, err := cfg.Recover(im)
	if err != nil {
		return nil, fmt.Errorf("find the routines of %s: %w", name, err)
	}
	p, err := plan.Make(c, o)
	if err != nil {
		return nil, err
	}
	return &program{im, c, p}, nil
}

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
	began    time.Time
	ended    time.Time
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
	stepped  uint64
}

func newRecording(p *program, process *target.Process, session *attach.Session, tids []int, log *slog.Logger) (*recording, error) {
	d, err := decoder.New(p.plan, log)
	if err != nil {
		return nil, err
	}
	r := &recording{program: p, process: process, session: session, decoder: d, threads: map[uint32]*thread{}, command: process.Command(), began: time.Now()}
	for _, id := range tids {
		if r.only == nil {
			r.only = map[uint32]bool{}
		}
		r.only[uint32(id)] = true
	}
	return r, nil
}

// drain reads what is in the ring buffer until none comes before the deadline.
func (r *recording) drain(deadline time.Time) error {
	for {
		b, err := r.session.Read(deadline)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
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
		t = r.begin(b.Thread, b.Started)
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

func (r *recording) begin(id uint32, started uint64) *thread {
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
	switch w.Kind() {
	case wire.Witness:
		t.received++
		if w.Site() < len(p.Sites) && p.Sites[w.Site()].Stepped {
			t.stepped++
		}
	case wire.Repeat:
		t.received += w.Value()
	}
}

// finish detaches and takes what is left. The recording stays readable.
func (r *recording) finish() error {
	err := r.session.Detach()
	if e := r.drain(time.Now().Add(drainTime)); err == nil {
		err = e
	}
	r.ended = time.Now()
	for id, l := range r.session.Losses() {
		if t := r.threads[id]; t != nil && l.Lost > t.lost {
			t.hits = l.Hits
			t.gap(l.Lost - t.lost)
		}
	}
	for _, t := range r.all {
		t.words.Close()
	}
	return err
}

// drainTime is how long an empty ring buffer is waited for: its producers are gone.
const drainTime = 20 * time.Millisecond
