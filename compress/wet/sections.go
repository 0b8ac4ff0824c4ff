package wet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
)

// The kinds of section that hold values. None is critical: paths are whole without them.
const (
	CodeKind   = wpp.FirstSection + 16 // instructions
	LogKind    = wpp.FirstSection + 18 // of a segment of a thread
	HeadKind   = wpp.FirstSection + 19 // of a segment, before its log
	CountsKind = wpp.FirstSection + 23
	CommonKind = wpp.FirstSection + 28 // of a group of segments, before the head of its first

	ThreadsKind = wpp.FirstSection + 27 // which threads the heads are of
)

// version is that of the sections.
const version = 7

// Encoded is a group of segments as files have it.
type Encoded struct {
	common   []byte // nil: they have nothing in common
	segments []segment
}

type segment struct{ head, log []byte }

// Size is how many bytes it has.
func (e *Encoded) Size() int {
	n := len(e.common)
	for _, s := range e.segments {
		n += len(s.head) + len(s.log)
	}
	return n
}

// Sections returns the log as it is now, as that of a thread, in a group of its own: see Encode and
// Encoded.
func (l *Log) Sections(thread int) []*wpp.Section {
	e := Encode([]*Log{l})
	return e.Sections(thread)
}

// Sections returns the sections of the segments, of a thread by its number: see ThreadsSection.
// Those of a thread follow one another in the order of its segments, and those of others may stand
// between them.
func (e *Encoded) Sections(thread int) (list []*wpp.Section) {
	if e.common != nil {
		list = append(list, wpp.NewSection(CommonKind, e.common))
	}
	for i, s := range e.segments {
		place := 0 // in its group; 0: it has nothing in common with others
		if e.common != nil {
			place = 1 + i
		}
		var head []byte
		for _, n := range [3]int{version, thread, place} {
			head = binary.AppendUvarint(head, uint64(n))
		}
		list = append(list, wpp.NewSection(HeadKind, append(head, s.head...)),
			wpp.NewSection(LogKind, s.log))
	}
	return list
}

// ThreadsSection returns the section that says which number each of Snapshot.Threads has in the
// sections of its values, -1: it has none. In a snapshot without one, thread i has number i. Where
// threads are in Snapshot.Threads may be known only when all have been met, and their first
// segments are in the file by then.
func ThreadsSection(numbers []int) *wpp.Section {
	b := binary.AppendUvarint(nil, version)
	for _, n := range numbers {
		b = binary.AppendUvarint(b, uint64(n+1))
	}
	return wpp.NewSection(ThreadsKind, b)
}

// threads returns the indices in Snapshot.Threads of those that have values, by their numbers.
func threads(s *wpp.Snapshot) (of map[int]int, err error) {
	for section := range s.SectionsOf(ThreadsKind) {
		read, err := section.Decoded(func() (any, error) {
			return readThreads(section, len(s.Threads))
		})
		if err != nil {
			return nil, err
		}
		return read.(map[int]int), nil
	}
	of = map[int]int{}
	for i := range s.Threads {
		of[i] = i
	}
	return of, nil
}

func readThreads(section *wpp.Section, n int) (of map[int]int, err error) {
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	r := &reader{rest: data}
	if v := r.number(); v != version {
		r.fail("version %d, which another wpptrace reads", v)
	}
	of = map[int]int{}
	for i := range n {
		number := r.count(math.MaxInt32, "numbers of threads") - 1
		if _, twice := of[number]; twice {
			r.fail("two threads of number %d", number)
		}
		if number >= 0 {
			of[number] = i
		}
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("read the section of threads with values: %w", err)
	}
	return of, nil
}

// A Segment is a part of a thread's stream with the values of what ran there. It is immutable: any
// number of goroutines may replay it, and others of its thread.
type Segment struct {
	snapshot *wpp.Snapshot
	paths    *wpp.Grammar // of the thread, up to the segment's end at least
	code     *Code
	thread   int
	head     int // bytes
	log      *wpp.Section
	common   *wpp.Section // nil: nothing
	place    int          // in its group
	ran      []Ran
	start    *start       // nil: it is the first
	end      *start       // nil: it is the last
	opened   chan *player // the log, once: see Ahead; nil: it is not read yet
}

// Ran is how often the symbol of a path was derived.
type Ran struct {
	Symbol uint32
	Times  uint64
}

// Segments returns the segments of a thread in their order, by its index in s.Threads, of a
// snapshot that was read with the kinds above as known ones; none: no values were recorded. What
// they hold is read when they are replayed. It fails where a section is damaged.
func Segments(s *wpp.Snapshot, thread int) (list []Segment, err error) {
	code, err := CodeOf(s)
	if code == nil { // a recording that was cut off has none
		return nil, err
	}
	of, err := threads(s)
	if err != nil {
		return nil, err
	}
	logs, commons := slices.Collect(s.SectionsOf(LogKind)), slices.Collect(s.SectionsOf(CommonKind))
	groups := map[int]*wpp.Section{} // by the number of the thread
	for head := range s.SectionsOf(HeadKind) {
		if len(logs) == 0 {
			return nil, errors.New("read the section of values: there is a beginning, and no values")
		}
		log := logs[0]
		logs = logs[1:]
		data, err := head.Data()
		if err != nil {
			return nil, err
		}
		r := &reader{rest: data}
		if v := r.number(); v != version {
			r.fail("version %d, which another wpptrace reads", v)
		}
		number := r.count(math.MaxInt32, "threads")
		place := r.count(MostInGroup, "segments of a group") - 1
		switch {
		case place > 0 && groups[number] == nil, place == 0 && len(commons) == 0:
			r.fail("a segment of a group that there is not")
		case place == 0:
			groups[number], commons = commons[0], commons[1:]
		}
		if i, ok := of[number]; !ok {
			r.fail("values of a thread of number %d, which there is not", number)
		} else if r.err == nil && i != thread {
			continue
		}
		g := Segment{snapshot: s, paths: s.Threads[thread].Grammar, code: code, thread: thread,
			head: len(data), log: log}
		if place >= 0 {
			g.common, g.place = groups[number], place
		}
		if r.err == nil {
			g.start = readStart(r, code)
			g.ran = readRan(r, len(s.Symbols))
			r.end()
		}
		switch n := len(list); {
		case r.err != nil:
		case (g.start == nil) != (n == 0),
			n > 1 && g.start.at.Compare(list[n-1].start.at) <= 0:
			r.fail("a segment that is not in its place")
		case n > 0:
			list[n-1].end = g.start
		}
		if r.err != nil {
			return nil, fmt.Errorf("read the section of values: %w", r.err)
		}
		list = append(list, g)
	}
	if len(logs) > 0 {
		return nil, errors.New("read the section of values: there are values without a beginning")
	}
	if len(list) == 1 {
		list[0].ran = ranIn(s, s.Threads[thread].Grammar)
	}
	return list, nil
}

// ranIn is how often paths are derived by all of a grammar.
func ranIn(s *wpp.Snapshot, g *wpp.Grammar) (list []Ran) {
	times := make([]uint64, len(s.Symbols))
	for rule := range g.Rules() {
		for _, v := range g.Body(rule) {
			if !wpp.IsRule(v) {
				times[v] += g.Uses(rule)
			}
		}
	}
	for symbol, n := range times {
		if n > 0 && !s.Symbols[symbol].IsMark {
			list = append(list, Ran{uint32(symbol), n})
		}
	}
	return list
}

// readRan reads how often symbols have run.
func readRan(r *reader, symbols int) []Ran {
	list := make([]Ran, r.count(min(symbols, len(r.rest)), "symbols"))
	short := r.take(len(list))
	next := 0
	const most = 1 << 32 // in all: a segment has far fewer
	left := uint64(most)
	for i, b := range short {
		gap, more := uint64(b>>4), uint64(b&15)
		for _, n := range [2]*uint64{&gap, &more} {
			if *n == tooLong {
				*n += min(r.number(), most)
			}
		}
		if gap >= uint64(symbols-next) {
			r.fail("path %d of %d", uint64(next)+gap, symbols)
			return nil
		}
		if more >= left {
			r.fail("a path that runs %d times, of %d", more+1, uint64(most))
			return nil
		}
		list[i] = Ran{uint32(next) + uint32(gap), more + 1}
		next += int(gap) + 1
		left -= more + 1
	}
	return list
}

// CodeOf returns the instructions of a snapshot that was read with CodeKind as a known one, nil if
// it has none. They are decoded once, and immutable. It fails where their section is damaged.
func CodeOf(s *wpp.Snapshot) (*Code, error) {
	for section := range s.SectionsOf(CodeKind) {
		read := func() (any, error) {
			data, err := section.Data()
			if err != nil {
				return nil, err
			}
			c, err := readCode(s, data)
			if err != nil {
				return nil, fmt.Errorf("read the section of instructions: %w", err)
			}
			return c, nil
		}
		c, err := section.Decoded(read)
		if err == nil && !c.(*Code).isOf(s) {
			c, err = read()
		}
		if err != nil {
			return nil, err
		}
		return c.(*Code), nil
	}
	return nil, nil
}

// First returns the position of the symbol of the thread's stream that the segment begins in.
func (g *Segment) First() uint64 {
	if g.start == nil {
		return 0
	}
	return g.start.at.Symbol
}

// Size is how many bytes the segment has in a file, but for their frames there: the first of a
// group has what that has in common.
func (g *Segment) Size() (int, error) {
	log, err := g.log.Data()
	if err != nil || g.common == nil || g.place > 0 {
		return g.head + len(log), err
	}
	common, err := g.common.Data()
	return g.head + len(log) + len(common), err
}

// Start returns the place that the segment begins at; false: at the thread's beginning. What comes
// before it in its path is of the segment before.
func (g *Segment) Start() (Place, bool) {
	if g.start == nil {
		return Place{}, false
	}
	return g.start.at, true
}

// Ran returns how often each path of the snapshot was derived from First on, up to that of the next
// segment, or the end: by symbols, ascending, without those that were not. It must not be changed.
func (g *Segment) Ran() []Ran { return g.ran }

// Alone returns the segment for who reads no other one of the thread: its stream is read up to the
// segment's end alone.
func (g *Segment) Alone() *Segment {
	alone := *g
	if g.end != nil {
		alone.paths = g.paths.First(g.end.at.Symbol + 1)
	}
	return &alone
}

// Symbols iterates over the symbols of the thread's stream from First on. To get there costs as
// much as the bodies of rules on the way.
func (g *Segment) Symbols() iter.Seq[uint32] {
	return expand(g.paths, g.First())
}

// Replay tells an observer what was executed at the symbols [from, to) of the thread's stream, as
// far as that is in the segment. It takes time linear in the segment's instructions up to there.
func (g *Segment) Replay(from, to uint64, o Observer) error {
	if to <= g.First() || g.end != nil && from > g.end.at.Symbol {
		return nil
	}
	_, err := g.walk(math.MaxUint64, from, to, o)
	return err
}

// Ahead returns the segment with what its first replay needs, which it begins to read: who has
// something else to do until then saves that time.
func (g *Segment) Ahead() *Segment {
	ahead := *g
	ahead.opened = make(chan *player, 1)
	go func() {
		defer close(ahead.opened)
		if p, err := g.open(); err == nil {
			ahead.opened <- p
		}
	}()
	return &ahead
}

// open reads the log.
func (g *Segment) open() (*player, error) {
	if g.opened != nil {
		if p := <-g.opened; p != nil {
			return p, nil
		}
	}
	data, err := g.log.Data()
	if err != nil {
		return nil, err
	}
	p := readLog(&reader{rest: data})
	if g.common == nil {
		return p, nil
	}
	if data, err = g.common.Data(); err != nil {
		return nil, err
	}
	r := &reader{rest: data}
	c := readCommon(r)
	if err = r.end(); err == nil {
		p.common, err = c.imageOf(g.place)
	}
	if err != nil {
		return nil, fmt.Errorf("read what segments of values have in common: %w", err)
	}
	return p, nil
}

// Before returns what is known before the nth instruction of the segment, from 0 on; it stays good.
// Behind the last one it is what is known at the end, and has no instruction. It takes time linear
// in n, some 100 ns an instruction.
func (g *Segment) Before(n uint64) (*Before, error) {
	w, err := g.walk(n, math.MaxUint64, math.MaxUint64, nil)
	if err != nil {
		return nil, err
	}
	w.before.walker = w
	return &w.before, nil
}

// walk walks along the segment, to the nth instruction and the symbol to, and tells an observer
// what was executed at symbols from another on.
func (g *Segment) walk(n, from, to uint64, o Observer) (*Walker, error) {
	thread := &g.snapshot.Threads[g.thread]
	p, err := g.open()
	if err != nil {
		return nil, err
	}
	w := NewWalker(g.code, p, nil)
	w.stop, w.done.TID, p.memory = n, thread.TID, w.Memory()
	at, err := g.begin(w)
	from = max(from, at)
	for sym := range expand(g.paths, at) {
		if at >= to || err != nil {
			break
		}
		if at == from {
			w.observe(o)
		}
		if at == p.symbols {
			w.Lose()
		}
		at++
		if s := &g.snapshot.Symbols[sym]; s.IsMark {
			err = w.Mark(s.Mark, s.N)
		} else {
			err = w.Path(&Path{s.Routine, s.Start, s.Blocks, s.Skip, s.Cut})
		}
		if failed := p.failed(); failed != nil && err == nil {
			err = failed
		}
		if w.memory.IsTooLarge() && err == nil {
			err = errTooLarge
		}
	}
	if err != nil && !errors.Is(err, errEnd) {
		return nil, fmt.Errorf("replay the values of thread %d: symbol %d of its stream: %w",
			thread.TID, at, err)
	}
	return w, nil
}

// begin begins a walk, and returns the position of its first symbol.
func (g *Segment) begin(w *Walker) (symbol uint64, err error) {
	if g.end != nil {
		w.ends, w.end = true, g.end.at
	}
	if g.start == nil {
		return 0, w.Begin()
	}
	m, _, err := machine.ParseState(g.start.state)
	if err == nil {
		w.Resume(g.start.at, m, g.start.external)
	}
	return g.start.at.Symbol, err
}

// expand iterates over the symbols that a grammar derives from a position on. To get there costs as
// much as the bodies of rules on the way.
func expand(g *wpp.Grammar, from uint64) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		stack := [][]uint32{g.Body(0)}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(*top) == 0 {
				stack = stack[:len(stack)-1]
				continue
			}
			v, n := (*top)[0], uint64(1)
			if *top = (*top)[1:]; wpp.IsRule(v) {
				n = g.Length(wpp.RuleOf(v))
			}
			switch {
			case from >= n:
				from -= n
			case wpp.IsRule(v):
				stack = append(stack, g.Body(wpp.RuleOf(v)))
			case !yield(v):
				return
			}
		}
	}
}

var errTooLarge = errors.New("it accesses more memory than a recording keeps: it is damaged")
