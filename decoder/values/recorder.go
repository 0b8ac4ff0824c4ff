package values

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/loader/loads"
)

// Paths give paths back from their numbers, as decoder.Decoder does.
type Paths interface {
	Path(routine int, number uint64) (decoder.Partial, error)
}

// segmentLength is how long a segment is, so that it is replayed within some 40 ms: that many
// instructions, or fewer of which more is said, see wet.Log.Work. Shorter ones take more bytes,
// though they share what they load alike: half as many instructions take 8 to 16 % more.
const segmentLength = 5 << 17

// A Recorder keeps the values of the threads of a process.
type Recorder struct {
	plan    *loads.Plan
	code    *wet.Code
	paths   Paths
	symbols *ops.Symbols
	others  Others
	threads map[key]*Thread
	known   map[symbol]*path
	sites   map[[2]int][]wet.Site // by routine and block
	indexed int                   // sites of the plan that are there
	sited   []*wet.Routine        // by number: those whose blocks have their sites
	fixed   readOnly
	variant variant
	segment uint64        // the length of a segment
	coding  chan struct{} // who encodes one has put something in
	races   bool          // others may write to all memory
	counts  wet.Counts
	scratch *machine.Machine // knows nothing
	sight   foresight

	ended    []*group // of all threads, in their order, but for those that are spilled
	segments uint64   // that have ended
	open     uint64   // bytes of those whose groups are not full
	bytes    uint64   // of the threads
}

type key struct {
	id      uint32
	started uint64
}

type symbol struct {
	routine int
	path    uint64
}

// A path is a symbol's, with how many sites lie on it.
type path struct {
	wet.Path
	number uint32 // of the symbol
	sites  int
}

// Others are those who may write to the memory of a process, besides the thread that runs.
type Others interface {
	// Update is called at each batch of states, and reports whether they may write anywhere: which
	// stays so.
	Update() (anywhere bool)
	// Holds reports whether, as of Update, they may write to some of these bytes.
	Holds(addr uint64, n int) bool
}

// New returns a recorder of what a plan reads. What loads have read where others may write is
// confirmed only where nobody else knows of it, and what a hit has not read there is not known.
// Others may be nil: there are none. symbols is the alphabet of the snapshots. The code's routines
// get the sites of the plan.
func New(p *loads.Plan, c *wet.Code, paths Paths, symbols *ops.Symbols, others Others) *Recorder {
	r := &Recorder{segment: segmentLength, coding: make(chan struct{}, 1), plan: p,
		code: c, paths: paths, symbols: symbols, others: others,
		threads: map[key]*Thread{}, known: map[symbol]*path{}, scratch: machine.New(),
		sight: foresight{machine: machine.New()}, sites: map[[2]int][]wet.Site{}}
	for i, x := range p.Extra {
		at := [2]int{x.Routine, x.Block}
		r.sites[at] = append(r.sites[at], wet.Site{Insn: x.Insn, Number: loads.FirstExtra + i})
	}
	return r
}

// SetSegment has segments of this length: see segmentLength. It comes before anything is taken.
func (r *Recorder) SetSegment(length uint64) { r.segment = length }

// routine returns the code of a routine, with its sites.
func (r *Recorder) routine(number int) (*wet.Routine, error) {
	if number < len(r.sited) && r.sited[number] != nil {
		return r.sited[number], nil
	}
	code := r.code.Routine(number)
	if code == nil {
		return nil, fmt.Errorf("there are no instructions of routine %d", number)
	}
	all := r.plan.Base.Sites
	for ; r.indexed < len(all); r.indexed++ { // there are more once libraries were added
		s := &all[r.indexed]
		at := [2]int{s.Routine, s.Block}
		r.sites[at] = append(r.sites[at], wet.Site{Insn: s.Insn, Number: r.indexed})
	}
	for i := range code.Blocks {
		list := r.sites[[2]int{number, i}]
		slices.SortFunc(list, func(a, b wet.Site) int { return cmp.Compare(a.Insn, b.Insn) })
		code.Blocks[i].Sites = list
	}
	if n := number + 1 - len(r.sited); n > 0 {
		r.sited = append(r.sited, make([]*wet.Routine, n)...)
	}
	r.sited[number] = code
	return code, nil
}

// Take takes what hits have seen: a batch that has states. It comes before the events of the same
// hits.
func (r *Recorder) Take(b wire.Batch) {
	r.look()
	r.thread(b.Thread, b.Started).take(b)
}

// look finds out what others may write by now.
func (r *Recorder) look() { r.races = r.races || r.others != nil && r.others.Update() }

// isShared reports whether others may write to some bytes, of a private frame or not.
func (r *Recorder) isShared(addr uint64, n int, isPrivate bool) bool {
	return r.races && !isPrivate || r.others != nil && r.others.Holds(addr, n)
}

// Thread returns what takes the operations of a thread, and hands them to next.
func (r *Recorder) Thread(id uint32, started uint64, next ops.Sink) *Thread {
	t := r.thread(id, started)
	t.next = next
	return t
}

func (r *Recorder) thread(id uint32, started uint64) *Thread {
	k := key{id, started}
	if r.threads[k] == nil {
		r.threads[k] = newThread(r, len(r.threads))
	}
	return r.threads[k]
}

// path returns the path of a symbol. It fails where there is none.
func (r *Recorder) path(routine int, number uint64) (*path, error) {
	s := symbol{routine, number}
	if p := r.known[s]; p != nil {
		return p, nil
	}
	from, err := r.paths.Path(routine, number)
	if err != nil {
		return nil, err
	}
	p := &path{number: r.symbols.Symbol(routine, number), Path: wet.Path{Routine: routine,
		Start: from.Start, Blocks: from.Blocks, Skip: from.Skip}}
	code, err := r.routine(routine)
	if err != nil {
		return nil, err
	}
	for i, n := range from.Blocks {
		b := &code.Blocks[n]
		lo, hi := 0, len(b.Insns)
		if i == 0 {
			lo = from.Skip
		}
		if i == len(from.Blocks)-1 && from.Insns > 0 {
			hi = from.Insns
			p.Cut = len(b.Insns) - hi
		}
		for _, s := range b.Sites {
			if s.Insn >= lo && s.Insn < hi {
				p.sites++
			}
		}
	}
	r.known[s] = p
	return p, nil
}

// Counts are what has been counted so far.
func (r *Recorder) Counts() wet.Counts {
	c := r.counts
	for _, t := range r.threads {
		c.Damaged += t.oracle.states.damaged
	}
	return c
}

// Sections copies what is known of values so far, of a snapshot that has these threads, nil: one
// without values. That is quick. It leaves the rest to complete, which may run while the recording
// goes on: to encode a segment takes some microseconds for each number that was not as predicted.
func (r *Recorder) Sections(of []*Thread) (complete func() []*wpp.Section) {
	code, counts := r.code.Copy(), r.Counts()
	numbers := make([]int, len(of))
	var parts []func() []*wpp.Section
	for i, t := range of {
		if numbers[i] = -1; t != nil {
			numbers[i] = t.number
			parts = append(parts, t.sections())
		}
	}
	return func() []*wpp.Section {
		list := []*wpp.Section{code.Section(), counts.Section(), wet.ThreadsSection(numbers)}
		for _, part := range parts {
			list = append(list, part()...)
		}
		return list
	}
}

// Bytes is about how much memory values take. It takes time linear in the groups of segments
// that are not spilled.
func (r *Recorder) Bytes() uint64 {
	const eachThread, eachSegment, eachPath = 1 << 10, 600, 200
	n := r.bytes + r.open + eachThread*uint64(len(r.threads)) + eachSegment*r.segments +
		eachPath*uint64(len(r.known))
	for _, s := range r.ended {
		n += s.bytes()
	}
	return n
}
