package record

import (
	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/decoder"
	"wpptrace/internal/overlapping"
	"wpptrace/loader/plan"
)

// A described program says what is counted in it.
type described struct {
	plan    *plan.Plan
	decoder *decoder.Decoder
}

func (d described) Symbol(routine int, path uint64) (wpp.Symbol, error) {
	p, err := d.decoder.Path(routine, path)
	if err != nil {
		return wpp.Symbol{}, err
	}
	return pathSymbol(ops.Meaning{Routine: routine, Path: path}, p,
		d.plan.Routines[routine].Routine), nil
}

func (d described) Shape(routine int) (*overlapped.Shape, error) {
	return overlapping.ShapeOf(d.plan, routine)
}

// An overlapSink counts a thread's paths, and its overlapping paths, in one pass.
type overlapSink struct {
	alphabet *ops.Symbols
	plain    *pathprofile.Counter
	*overlapped.Thread
}

func (s overlapSink) NewPath(routine int, path, times uint64) {
	sym := s.alphabet.Symbol(routine, path)
	s.plain.Count(sym, times)
	s.Symbol(sym, times)
}

func (s overlapSink) Mark(m ops.Mark, n uint64) {
	s.plain.Mark(m, n)
	s.Thread.Mark(m, n)
}
