package truth

import "slices"

// A Trace is what one run executed.
type Trace struct {
	Threads []*Thread // in order of creation; the first is the one that main ran in
	Stdout  []byte
	Stderr  []byte
	Exit    int  // exit status; -1 when a signal ended the program
	Signal  int  // the signal that ended the program, or 0
	Steps   int  // single steps made, those outside of the main executable included: the run's cost
	Cut     bool // Options.Most ended the run
	// Bias is run-time minus link-time addresses of the main executable. It is 0 in a run without
	// values.
	Bias uint64
}

// Equal reports whether another run executed the same, thread by thread.
func (t *Trace) Equal(other *Trace) bool {
	return slices.EqualFunc(t.Threads, other.Threads,
		func(a, b *Thread) bool { return slices.Equal(a.Insns, b.Insns) })
}

// Total is the number of instructions that all threads executed in the main executable.
func (t *Trace) Total() int {
	n := 0
	for _, th := range t.Threads {
		n += len(th.Insns)
	}
	return n
}

// A Thread is what one thread executed in the main executable.
type Thread struct {
	TID   int
	Insns []uint64 // link-time addresses in order of execution
	// the stack pointer before each of Insns ran, at run time; nil unless Options.Stack says so
	Stack  []uint64
	Events []Event // in order of Index
	// Values are what the instructions among Insns did, in order, where Options.Values asks for it.
	Values []Step
}

// An Event says that a signal handler began or ended before Insns[Index] ran.
type Event struct {
	Index  int
	Kind   EventKind
	Signal int // Delivered: its number
}

// An EventKind distinguishes events.
type EventKind uint8

// The kinds of event.
const (
	Delivered EventKind = iota // a handler was entered
	Returned                   // the innermost handler ended with rt_sigreturn
	// the innermost handler was left without one: siglongjmp, an exception
	Left
)

// An Activation is one run of a signal handler, without the handlers that interrupted it.
type Activation struct {
	Signal int
	Insns  []uint64
}

// Split takes the stream apart: what the thread ran outside of any handler, and each handler
// activation, in the order in which they began: of signals that are delivered at once the last
// one's handler runs first. After a handler was left, what follows belongs to what it had
// interrupted.
func (t *Thread) Split() (main []uint64, handlers []Activation) {
	const pending = -1
	type delivery struct{ signal, handler int } // handler: its index, or pending
	var open []delivery                         // those whose handlers are running, innermost last
	add := func(insns []uint64) {
		if len(open) == 0 {
			main = append(main, insns...)
			return
		}
		d := &open[len(open)-1]
		if d.handler == pending && len(insns) > 0 {
			d.handler = len(handlers)
			handlers = append(handlers, Activation{Signal: d.signal})
		}
		if d.handler != pending {
			h := &handlers[d.handler]
			h.Insns = append(h.Insns, insns...)
		}
	}
	from := 0
	for _, e := range t.Events {
		add(t.Insns[from:e.Index])
		from = e.Index
		switch {
		case e.Kind == Delivered:
			open = append(open, delivery{e.Signal, pending})
		case len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	add(t.Insns[from:])
	return slices.Clip(main), handlers
}
