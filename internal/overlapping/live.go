package overlapping

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/decoder"
	"wpptrace/loader/plan"
)

// NewCounter returns a counter of overlapping paths of a degree, of what a decoder says of a plan,
// in the symbols of an alphabet. It belongs to the decoder's goroutine.
func NewCounter(degree int, alphabet *ops.Symbols, p *plan.Plan,
	d *decoder.Decoder) *overlapped.Counter {
	return overlapped.NewCounter(degree, alphabet, decoded{p, d})
}

// NewEntries returns a counter of how activations began, of what a decoder says of a plan, in the
// symbols of an alphabet. It belongs to the decoder's goroutine.
func NewEntries(alphabet *ops.Symbols, p *plan.Plan, d *decoder.Decoder) *entries.Counter {
	return entries.NewCounter(alphabet, func(sym uint32) (routine, block int, ok bool) {
		m := alphabet.Meaning(sym)
		if m.IsMark {
			return 0, 0, false
		}
		path, err := d.Path(m.Routine, m.Path)
		if err != nil || path.Start == ops.StartResume || len(path.Blocks) == 0 ||
			path.End != ops.EndCall && path.End != ops.EndTail {
			return 0, 0, false
		}
		block = path.Blocks[len(path.Blocks)-1]
		part, first := partOf(p, m.Routine)
		to := calleeOf(part.Program, part.Routines[m.Routine-first].Routine, block)
		return m.Routine, block, to == nil || !part.Routines[to.ID].Traced()
	})
}

// A decoded program is one of which a decoder knows the paths.
type decoded struct {
	plan    *plan.Plan
	decoder *decoder.Decoder
}

func (d decoded) Symbol(routine int, path uint64) (wpp.Symbol, error) {
	p, err := d.decoder.Path(routine, path)
	return wpp.Symbol{Routine: routine, Path: path, Start: p.Start, End: p.End, Blocks: p.Blocks},
		err
}

func (d decoded) Shape(routine int) (*overlapped.Shape, error) { return ShapeOf(d.plan, routine) }

// Sink returns a sink for a thread whose paths one counter counts, and whose overlapping paths
// another one, in one pass. Both count symbols of the alphabet.
func Sink(alphabet *ops.Symbols, plain *pathprofile.Counter,
	overlaps *overlapped.Counter) ops.Sink {
	return sink{alphabet, plain, overlaps.Thread()}
}

type sink struct {
	alphabet *ops.Symbols
	plain    *pathprofile.Counter
	*overlapped.Thread
}

func (s sink) NewPath(routine int, path, times uint64) {
	sym := s.alphabet.Symbol(routine, path)
	s.plain.Count(sym, times)
	s.Symbol(sym, times)
}

func (s sink) Mark(m ops.Mark, n uint64) {
	s.plain.Mark(m, n)
	s.Thread.Mark(m, n)
}
