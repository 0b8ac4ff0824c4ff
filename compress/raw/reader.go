package raw

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"wpptrace/compress/ops"
)

// ErrTruncated says that a trace ends before its end: what it holds up to there has been read.
var ErrTruncated = errors.New("the trace is cut off")

// A Reader reads a raw trace. It belongs to one goroutine.
type Reader struct {
	in       bytesIn
	begin    func(Thread) ops.Sink
	routines []Routine
	indices  map[uint64]int // of routines, by number
	paths    pathTable
	threads  map[uint64]*thread // by number
	current  *thread
	open     int // activations of all threads
}

// NewReader returns a reader of a trace, which reads ahead.
func NewReader(r io.Reader) *Reader {
	return &Reader{in: bytesIn{r: bufio.NewReaderSize(r, 1<<16)}, indices: map[uint64]int{},
		threads: map[uint64]*thread{}}
}

// Routines returns the routines that have come up, by the numbers that sinks are given: in the
// order in which they did. It must not be changed.
func (r *Reader) Routines() []Routine { return r.routines }

// Path returns where a path starts and ends that a sink was given.
func (r *Reader) Path(routine int, path uint64) (ops.Start, ops.End) {
	k := r.paths.kinds[r.paths.symbols.Symbol(routine, path)]
	return k.start, k.end
}

// Read reads the trace to its end. It asks begin for the sink of each thread, when the thread comes
// up, and hands it the thread's operations. Errors name the byte, counted from 0, where the
// operation begins that cannot be meant; they are ErrTruncated, or the source's, or a fault of the
// trace.
func (r *Reader) Read(begin func(Thread) ops.Sink) error {
	r.begin = begin
	at, err := int64(0), r.header()
	for over := false; err == nil && !over; {
		at = r.in.at
		over, err = r.operation()
	}
	switch {
	case err == nil:
		return nil
	case r.in.err == io.EOF:
		return fmt.Errorf("raw trace ends at byte %d, without EndTrace: %w", r.in.at, ErrTruncated)
	case r.in.err != nil:
		return fmt.Errorf("read raw trace at byte %d: %w", r.in.at, r.in.err)
	}
	return fmt.Errorf("raw trace at byte %d: %w", at, err)
}

func (r *Reader) header() error {
	for i := range len(magic) {
		if b, err := r.in.byte(); err != nil || b != magic[i] {
			r.in.err = notEOF(r.in.err)
			return errors.New("this is no raw trace: see docs/raw-trace.md")
		}
	}
	v, err := r.in.byte()
	if err == nil && (v < 1 || v > version) {
		err = fmt.Errorf("version %d of the format, where this wpptrace reads versions up to %d", v,
			version)
	}
	return err
}

// notEOF is nil for an end: what is too short for a header is not cut off, but something else.
func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// operation reads an operation and does it.
func (r *Reader) operation() (over bool, err error) {
	b, err := r.in.byte()
	if err != nil {
		return false, err
	}
	switch op := opcode(b); op {
	case enterThread:
		return false, r.enterThread()
	case enterRoutine, leaveRoutine, newPath, newPaths, gap, gap + 1, gap + 2, gap + 3, handler:
		if r.current == nil {
			return false, errors.New("no EnterThread before")
		}
		return false, r.execute(op)
	case defineThread:
		return false, r.defineThread()
	case defineRoutine:
		return false, r.defineRoutine()
	case definePath:
		return false, r.definePath()
	case endTrace:
		return true, r.atEnd()
	}
	return false, fmt.Errorf("unknown opcode %#02x", b)
}

// atEnd makes sure that nothing is missing, and that nothing comes behind the trace.
func (r *Reader) atEnd() error {
	for _, t := range r.threads {
		if t.owed > 0 {
			return t.missing()
		}
	}
	_, err := r.in.byte()
	if err == nil {
		return errors.New("something stands behind EndTrace")
	}
	r.in.err = notEOF(r.in.err)
	return r.in.err
}

func (r *Reader) enterThread() error {
	number, err := r.in.number("thread")
	if err != nil {
		return err
	}
	if r.threads[number] == nil {
		r.beginThread(number, Thread{TID: int(number)})
	}
	r.current = r.threads[number]
	return nil
}

func (r *Reader) beginThread(number uint64, t Thread) {
	r.threads[number] = &thread{reader: r, sink: r.begin(t)}
}

func (r *Reader) defineThread() error {
	number, err := r.in.number("thread")
	if err != nil {
		return err
	}
	tid, err := r.in.number("thread id")
	if err != nil {
		return err
	}
	start, err := r.in.uvarint()
	if err != nil {
		return err
	}
	name, err := r.in.name()
	if err != nil {
		return err
	}
	if r.threads[number] != nil {
		return fmt.Errorf("thread %d has been defined or entered before", number)
	}
	r.beginThread(number, Thread{int(tid), start, name})
	return nil
}

func (r *Reader) defineRoutine() error {
	number, err := r.in.number("routine")
	if err != nil {
		return err
	}
	entry, err := r.in.uvarint()
	if err != nil {
		return err
	}
	name, err := r.in.name()
	if err != nil {
		return err
	}
	if _, ok := r.indices[number]; ok {
		return fmt.Errorf("routine %d has been defined or used before", number)
	}
	r.addRoutine(number, Routine{entry, name})
	return nil
}

func (r *Reader) addRoutine(number uint64, routine Routine) {
	r.indices[number] = len(r.routines)
	r.routines = append(r.routines, routine)
}

// routine reads the number of a routine and returns its index. One that was not defined has its
// number for a name.
func (r *Reader) routine() (index int, err error) {
	number, err := r.in.number("routine")
	if err != nil {
		return 0, err
	}
	if _, ok := r.indices[number]; !ok {
		r.addRoutine(number, Routine{Name: fmt.Sprintf("routine_%d", number)})
	}
	return r.indices[number], nil
}

func (r *Reader) definePath() error {
	routine, err := r.routine()
	if err != nil {
		return err
	}
	path, err := r.in.uvarint()
	if err != nil {
		return err
	}
	b, err := r.in.byte()
	if err != nil {
		return err
	}
	k := kinds{ops.Start(b >> 4), ops.End(b & 0xf)}
	if !k.start.Valid() || !k.end.Valid() {
		return fmt.Errorf("path %d of %.60q starts and ends at unknown kinds %#02x", path,
			r.routines[routine].Name, b)
	}
	if !r.paths.define(routine, path, k) {
		return fmt.Errorf("path %d of %.60q has been defined before", path,
			r.routines[routine].Name)
	}
	return nil
}
