package raw

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"wpptrace/compress/ops"
)

// errTooDeep says that a trace has more open activations than a reader accepts.
var errTooDeep = fmt.Errorf("more than %d activations are open", mostOpen)

// A Writer writes a raw trace. The first error ends it: nothing more is written, and Close returns
// it. It belongs to one goroutine, with all its threads.
type Writer struct {
	out      *bufio.Writer
	describe func(routine int, path uint64) (ops.Start, ops.End, error)
	paths    pathTable
	threads  uint64
	current  *ThreadWriter
	open     int // activations of all threads
	err      error
}

// NewWriter begins a trace. It asks describe, once for each path, where the path starts and ends,
// when it comes up first.
func NewWriter(w io.Writer, describe func(routine int,
	path uint64) (ops.Start, ops.End, error)) *Writer {
	out := bufio.NewWriterSize(w, 1<<16)
	out.WriteString(magic)
	out.WriteByte(version)
	return &Writer{out: out, describe: describe}
}

// DefineRoutine names a routine, before any path of it. One that is never defined is known by its
// number alone.
func (w *Writer) DefineRoutine(routine int, r Routine) {
	w.put(defineRoutine, uint64(routine), r.Entry)
	w.name(r.Name)
}

// Thread begins a thread and returns the sink of its operations. The threads' operations may come
// in any order, each thread's own being kept.
func (w *Writer) Thread(t Thread) *ThreadWriter {
	tw := &ThreadWriter{w: w, number: w.threads}
	w.threads++
	w.put(defineThread, tw.number, uint64(t.TID), t.Start)
	w.name(t.Name)
	return tw
}

// Err is why nothing more is written; nil: all is, as far as is known by now.
func (w *Writer) Err() error { return w.err }

// Close ends the trace. Only then is it whole. It does not close what it writes to.
func (w *Writer) Close() error {
	w.put(endTrace)
	if err := w.out.Flush(); err != nil && w.err == nil {
		w.err = err
	}
	if w.err != nil {
		return fmt.Errorf("write raw trace: %w", w.err)
	}
	return nil
}

// put writes an operation.
func (w *Writer) put(op opcode, operands ...uint64) {
	if w.err != nil {
		return
	}
	b := append(w.out.AvailableBuffer(), byte(op))
	for _, n := range operands {
		b = binary.AppendUvarint(b, n)
	}
	_, w.err = w.out.Write(b)
}

// name writes the operand that is a name: its beginning, where it is too long.
func (w *Writer) name(name string) {
	name = name[:min(len(name), mostName)]
	if w.err == nil {
		w.out.Write(binary.AppendUvarint(w.out.AvailableBuffer(), uint64(len(name))))
		_, w.err = w.out.WriteString(name)
	}
}

// kindsOf returns the kinds of a path, which it defines when they are new.
func (w *Writer) kindsOf(routine int, path uint64) kinds {
	sym := int(w.paths.symbols.Symbol(routine, path))
	if sym < len(w.paths.kinds) {
		return w.paths.kinds[sym]
	}
	start, end, err := w.describe(routine, path)
	if err != nil {
		w.err = errors.Join(w.err, err)
	}
	k := kinds{start, end}
	w.paths.kinds = append(w.paths.kinds, k)
	w.put(definePath, uint64(routine), path, uint64(start)<<4|uint64(end))
	return k
}

// A ThreadWriter is the sink of one thread of a trace. As in a snapshot, what is entered and left
// follows from the paths and the marks, by the rules of package ops: EnterRoutine and LeaveRoutine
// are written where these imply them. An activation that Resume named only by number is entered
// by its first path.
type ThreadWriter struct {
	w       *Writer
	number  uint64
	open    []int32 // the routines of the activations
	resumed bool    // Resume stands just before
}

// EnterRoutine writes nothing: the activation's first path does.
func (t *ThreadWriter) EnterRoutine(int, ops.Caller) {}

// LeaveRoutine writes nothing: the activation's last path or an Unwind mark does.
func (t *ThreadWriter) LeaveRoutine() {}

// NewPath writes a path, and before it what makes it understood.
func (t *ThreadWriter) NewPath(routine int, path, times uint64) {
	k := t.w.kindsOf(routine, path)
	t.enter()
	if n := len(t.open); k.start == ops.StartEntry || t.resumed || n == 0 ||
		int(t.open[n-1]) != routine {
		t.push(routine)
	}
	t.resumed = false
	switch {
	case times == 1:
		t.w.put(newPath, path)
	case k.mayRepeat(times):
		t.w.put(newPaths, path, times)
	case t.w.err == nil:
		t.w.err = errTimes(path, fmt.Sprint("routine ", routine), times)
	}
	if k.returns() {
		t.leave(1)
	}
}

// Mark writes a mark.
func (t *ThreadWriter) Mark(m ops.Mark, n uint64) {
	t.enter()
	t.w.put(gap+opcode(m), n)
	t.resumed = m == ops.Resume
	if m == ops.Unwind {
		t.leave(n)
	}
}

// enter makes the thread the one that operations are of.
func (t *ThreadWriter) enter() {
	if t.w.current != t {
		t.w.current = t
		t.w.put(enterThread, t.number)
	}
}

func (t *ThreadWriter) push(routine int) {
	t.open = append(t.open, int32(routine))
	t.w.put(enterRoutine, uint64(routine))
	if t.w.open++; t.w.open > mostOpen && t.w.err == nil {
		t.w.err = errTooDeep
	}
}

func (t *ThreadWriter) leave(n uint64) {
	for range min(n, uint64(len(t.open))) {
		t.open = t.open[:len(t.open)-1]
		t.w.open--
		t.w.put(leaveRoutine)
	}
}
