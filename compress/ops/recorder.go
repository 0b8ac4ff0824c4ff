package ops

// A Recorder is the Sink of one thread that turns its operations into symbols and appends them to a
// grammar, or wherever emit puts them. It neither allocates nor looks at path tables: an operation
// costs one look-up in the alphabet.
type Recorder struct {
	symbols *Symbols
	emit    func(sym uint32, times uint64)
}

// NewRecorder returns a recorder that names paths and marks by an alphabet, which several recorders
// may share, and hands each symbol to emit in the order of the thread's execution: it comes so many
// times, one directly after the other.
func NewRecorder(symbols *Symbols, emit func(sym uint32, times uint64)) *Recorder {
	return &Recorder{symbols: symbols, emit: emit}
}

// EnterRoutine records nothing: the activation's first path says the same.
func (r *Recorder) EnterRoutine(int, Caller) {}

// LeaveRoutine records nothing: the activation's last path or an Unwind mark says the same.
func (r *Recorder) LeaveRoutine() {}

// NewPath appends the path's symbol.
func (r *Recorder) NewPath(routine int, path, times uint64) {
	r.emit(r.symbols.Symbol(routine, path), times)
}

// Mark appends the mark's symbol.
func (r *Recorder) Mark(m Mark, n uint64) { r.emit(r.symbols.MarkSymbol(m, n), 1) }

// An Expander turns the paths and marks of one thread back into operations, by the rules of the
// package comment.
//
// It keeps no stack: a thread's stream may be as deep as it likes. A hostile Unwind count is cut
// off at the number of activations that are open, so that the work is bounded by the length of the
// stream.
type Expander struct {
	sink    Sink
	open    uint64
	resumed bool
}

// NewExpander returns an expander for one thread that hands operations to a sink.
func NewExpander(sink Sink) *Expander { return &Expander{sink: sink} }

// Path expands a path whose start and end are known from the path tables.
func (x *Expander) Path(routine int, path uint64, start Start, end End) {
	if start == StartEntry || x.resumed {
		x.open++
		x.sink.EnterRoutine(routine, Unknown)
	}
	x.resumed = false
	x.sink.NewPath(routine, path, 1)
	if end == EndReturn || end == EndTail {
		x.leave(1)
	}
}

// Mark expands a mark.
func (x *Expander) Mark(m Mark, n uint64) {
	x.sink.Mark(m, n)
	x.resumed = m == Resume
	if m == Unwind {
		x.leave(n)
	}
}

func (x *Expander) leave(n uint64) {
	for range min(n, x.open) {
		x.open--
		x.sink.LeaveRoutine()
	}
}
