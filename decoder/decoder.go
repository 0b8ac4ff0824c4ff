package decoder

import (
	"encoding/binary"
	"fmt"
	"log/slog"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder/route"
	"wpptrace/loader/plan"
)

// A Decoder holds what all threads of a program share: the routes between events, and the numbers
// of partial paths.
type Decoder struct {
	program   *route.Program
	sites     []plan.Site       // of the plan
	partials  [][]Partial       // by routine
	numbers   map[string]uint64 // of partial paths, by what key spells
	key       []byte
	log       *slog.Logger
	anomalies uint64
	ambiguous uint64
}

// A Partial is a path of which the beginning or the end is not known.
type Partial struct {
	Start  ops.Start
	End    ops.End
	Blocks []int
	Skip   int // instructions of the first block that ran before
	Insns  int // instructions of the last block up to the last that ran; 0: all
}

// New prepares to decode the events of a plan. Events that do not fit the plan are logged to log;
// it may be nil.
func New(p *plan.Plan, log *slog.Logger) (*Decoder, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	program, err := route.New(p)
	d := &Decoder{program: program, sites: p.Sites, numbers: map[string]uint64{}, log: log}
	d.partials = make([][]Partial, len(program.Routines))
	return d, err
}

// Grow takes in what has been appended to the plan since.
func (d *Decoder) Grow() error {
	err := d.program.Grow()
	d.sites = d.program.Plan.Sites
	d.partials = append(d.partials, make([][]Partial, len(d.program.Routines)-len(d.partials))...)
	return err
}

// Anomalies counts the events that did not fit the plan: 0 unless something outside the model
// happened. Ambiguous counts the times that evidence left more than one route.
func (d *Decoder) Anomalies() (anomalies, ambiguous uint64) { return d.anomalies, d.ambiguous }

func (d *Decoder) anomaly(what string, args ...any) {
	d.anomalies++
	d.log.Warn(what, args...)
}

func (d *Decoder) ambiguity(what string, args ...any) {
	d.ambiguous++
	d.log.Debug(what, args...)
}

// HasRun reports whether a thread has run a traced routine, by its first batch: a kernel that knows
// nothing of routines reports all threads that end in an image, or in a handler that has
// interrupted one.
func (d *Decoder) HasRun(first wire.Batch) bool {
	if first.Hits > 0 || first.Len() == 0 {
		return true
	}
	for i := range first.Len() {
		switch e := first.Event(i); e.Kind() {
		case wire.Interrupt:
			if d.program.Traces(e.Address()) {
				return true
			}
		case wire.Fault: // in what it has called
			return true
		case wire.Caller, wire.End:
			if d.leadsToTraced(e) {
				return true
			}
		}
	}
	return false
}

// leadsToTraced reports whether a Caller or End is in a traced routine, or in external code that
// one has called.
func (d *Decoder) leadsToTraced(e wire.Event) bool {
	switch e.Origin() {
	case wire.ReturnsToImage:
		_, calls := d.program.CallTo(e.Address())
		return calls
	case wire.Inside, wire.Handler:
		return d.program.Traces(e.Address())
	}
	return false
}

// Paths is the number of acyclic paths of a routine; numbers from there on are partial paths.
func (d *Decoder) Paths(routine int) uint64 {
	if n := d.program.Routines[routine].Numbers; n != nil {
		return n.Total
	}
	return 0
}

// Path gives a path back from its number. A path that is whole has neither Skip nor Insns.
func (d *Decoder) Path(routine int, number uint64) (Partial, error) {
	r, partials := d.program.Routines[routine], d.partials[routine]
	total := r.Numbers.Total
	if i := number - total; number >= total && i < uint64(len(partials)) {
		return partials[i], nil
	}
	p, err := r.Numbers.Decode(number)
	if err != nil {
		return Partial{}, fmt.Errorf("decode path %d of %s: %w", number, r.Plan.Name, err)
	}
	return Partial{Start: ops.Start(p.Start), End: ops.End(p.End), Blocks: p.Blocks}, nil
}

// partial returns the number of a partial path.
func (d *Decoder) partial(r *route.Routine, p Partial) uint64 {
	key := binary.AppendUvarint(d.key[:0], uint64(r.ID))
	key = append(key, byte(p.Start), byte(p.End))
	for _, n := range []int{p.Skip, p.Insns} {
		key = binary.AppendUvarint(key, uint64(n))
	}
	for _, b := range p.Blocks {
		key = binary.AppendUvarint(key, uint64(b))
	}
	d.key = key
	number, ok := d.numbers[string(key)]
	if !ok {
		number = r.Numbers.Total + uint64(len(d.partials[r.ID]))
		p.Blocks = append([]int(nil), p.Blocks...)
		d.partials[r.ID] = append(d.partials[r.ID], p)
		d.numbers[string(key)] = number
	}
	return number
}
