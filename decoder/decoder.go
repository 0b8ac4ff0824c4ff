package decoder

import (
	"encoding/binary"
	"fmt"
	"log/slog"

	"wpptrace/compress/ops"
	"wpptrace/loader/paths"
	"wpptrace/loader/plan"
)

// A Decoder holds what all threads of a program share: the tables from position and witness to the
// way between them, filled as they are needed.
type Decoder struct {
	plan      *plan.Plan
	routines  []*routine
	main      *routine          // that the process's first thread calls, once; nil: it is not known
	returns   map[uint64]place  // by return address, as plan.Plan.Calls
	partials  map[string]uint64 // numbers, by what key spells
	key       []byte
	callers   map[*routine][]*routine // see silentCallers
	log       *slog.Logger
	anomalies uint64
	ambiguous uint64
}

// A place is a block of a routine.
type place struct {
	r     *routine
	block int
}

// A routine is a routine as the decoder sees it.
type routine struct {
	*plan.Routine
	numbers  *paths.Numbering
	states   []*state // by 2*block + outcome; the last is the entry
	cases    map[caseKey]*state
	kind     []plan.Callee
	callee   []*routine
	pad      []bool
	again    []bool // the block follows a call that may return twice
	silence  *silence
	partials []Partial
}

// A Partial is a path of which the beginning or the end is not known.
type Partial struct {
	Start  ops.Start
	End    ops.End
	Blocks []int
	Skip   int // instructions of the first block that ran before
	Insns  int // instructions of the last block up to the last that ran; 0: all
}

// New prepares to decode the words of a plan. log hears of what does not fit the plan; it may be
// nil.
func New(p *plan.Plan, log *slog.Logger) (*Decoder, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &Decoder{plan: p, returns: map[uint64]place{}, partials: map[string]uint64{}, log: log}
	return d, d.Grow()
}

// Grow takes in what has been appended to the plan since.
func (d *Decoder) Grow() error {
	known := len(d.routines)
	for _, pr := range d.plan.Routines[known:] {
		d.routines = append(d.routines, &routine{Routine: pr})
	}
	d.callers = nil
	if m := d.plan.Parts[0].Program.Main(); m != nil {
		d.main = d.routines[m.ID]
	}
	for _, r := range d.routines[known:] {
		if !r.Traced() {
			continue
		}
		n, err := paths.Number(r.Routine.Routine)
		if err != nil {
			return fmt.Errorf("number the paths of %s: %w", r.Name, err)
		}
		r.numbers = n
		d.prepare(r)
	}
	return nil
}

func (d *Decoder) prepare(r *routine) {
	n := len(r.Blocks)
	r.states = make([]*state, 2*n+1)
	r.kind, r.callee = make([]plan.Callee, n), make([]*routine, n)
	r.pad, r.again = make([]bool, n), make([]bool, n)
	for _, p := range r.Pads {
		r.pad[p] = true
	}
	for b := range r.Blocks {
		block := &r.Blocks[b]
		kind, t := r.Callee(b)
		r.kind[b] = kind
		if t != nil {
			r.callee[b] = d.routines[t.ID]
		}
		if block.IsCall() {
			d.returns[block.Hi+r.Offset()] = place{r, b}
		}
		if r.ReturnsTwice(b) {
			r.again[block.Succ[0]] = true
		}
	}
}

// Anomalies counts the words that did not fit the plan: 0 unless something outside the model
// happened. Ambiguous counts the times that evidence left more than one way.
func (d *Decoder) Anomalies() (anomalies, ambiguous uint64) { return d.anomalies, d.ambiguous }

// observes reports whether an address lies in a routine whose paths are recorded.
func (d *Decoder) observes(pc uint64) bool {
	r := d.plan.Containing(pc)
	return r != nil && r.Traced()
}

// Paths is the number of acyclic paths of a routine; numbers from there on are partial paths.
func (d *Decoder) Paths(routine int) uint64 {
	if n := d.routines[routine].numbers; n != nil {
		return n.Total
	}
	return 0
}

// Path gives a path back from its number. A path that is whole has neither Skip nor Insns.
func (d *Decoder) Path(routine int, number uint64) (Partial, error) {
	r := d.routines[routine]
	if i := number - r.numbers.Total; number >= r.numbers.Total && i < uint64(len(r.partials)) {
		return r.partials[i], nil
	}
	p, err := r.numbers.Decode(number)
	if err != nil {
		return Partial{}, fmt.Errorf("decode path %d of %s: %w", number, r.Name, err)
	}
	return Partial{Start: ops.Start(p.Start), End: ops.End(p.End), Blocks: p.Blocks}, nil
}

// partial returns the number of a partial path.
func (d *Decoder) partial(r *routine, p Partial) uint64 {
	key := binary.AppendUvarint(d.key[:0], uint64(r.ID))
	key = append(key, byte(p.Start), byte(p.End))
	for _, n := range []int{p.Skip, p.Insns} {
		key = binary.AppendUvarint(key, uint64(n))
	}
	for _, b := range p.Blocks {
		key = binary.AppendUvarint(key, uint64(b))
	}
	d.key = key
	number, ok := d.partials[string(key)]
	if !ok {
		number = r.numbers.Total + uint64(len(r.partials))
		p.Blocks = append([]int(nil), p.Blocks...)
		r.partials = append(r.partials, p)
		d.partials[string(key)] = number
	}
	return number
}
