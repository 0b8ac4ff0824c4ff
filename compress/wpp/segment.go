package wpp

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Segment is a part of the stream of a thread, as a grammar of its own: in memory, or where its
// Source gets it from whenever it is needed. It is immutable.
type Segment struct {
	size    Size
	grammar *Grammar // nil: the source has it
	source  Source   // nil: it is in memory
	first   uint64   // how many symbols of its stream are needed, the first ones; 0: all
}

// A Size is how large a grammar is.
type Size struct {
	Rules   uint64
	Symbols uint64 // of all bodies
	Length  uint64 // symbols of the stream
}

// A Source has a segment's grammar, for example in a file. Any number of goroutines may use it.
type Source interface {
	// Load returns the grammar, decoded for the caller alone. It is of the size that the segment
	// declares, and its terminals are symbols of the snapshot. Where it derives more than so many
	// symbols, it may be one that derives these and some of those behind.
	Load(first uint64) (*Grammar, error)
	// Name is the path of the file that the grammar is in, or "".
	Name() string
}

// NewSegment returns a segment that is in memory, which must not be one of segments itself.
func NewSegment(g *Grammar) *Segment {
	return &Segment{grammar: g, size: Size{uint64(g.Rules()), uint64(g.BodySymbols()), g.Length(0)}}
}

// StoredSegment returns a segment of a declared size that a source has. It declares a rule at
// least, and symbols where it derives any.
func StoredSegment(size Size, source Source) *Segment {
	return &Segment{size: size, source: source}
}

// Length returns how many symbols the segment derives.
func (s *Segment) Length() uint64 { return s.size.Length }

// Size returns how large the segment's grammar is, or declares to be where a source has it.
func (s *Segment) Size() Size { return s.size }

// Source returns where the segment is, or nil for one in memory.
func (s *Segment) Source() Source { return s.source }

// Load returns the segment's grammar, which must not be changed.
func (s *Segment) Load() (*Grammar, error) {
	if s.grammar != nil {
		return s.grammar, nil
	}
	return s.source.Load(cmp.Or(s.first, math.MaxUint64))
}

// emptyGrammar derives nothing. Threads that did nothing share it.
var emptyGrammar = &Grammar{bodies: [][]uint32{nil}, order: []int{0}, lengths: []uint64{0},
	uses: []uint64{1}}

// Join returns the grammar of segments that follow one another: its start rule's symbols are their
// start rules. Segments of a source stay there, but for some that were needed last. CheckJoin says
// which segments can be joined.
func Join(list []*Segment) *Grammar {
	// only a start rule may be empty
	list = slices.DeleteFunc(slices.Clone(list),
		func(s *Segment) bool { return s.size.Length == 0 })
	if len(list) == 0 {
		return emptyGrammar
	}
	if len(list) == 1 && list[0].grammar != nil {
		return list[0].grammar
	}
	j := &segments{list: list}
	next := 1
	for _, s := range list {
		j.first = append(j.first, next)
		j.start = append(j.start, RuleSymbol(next))
		j.length = addSaturating(j.length, s.size.Length)
		next += int(s.size.Rules)
	}
	j.first = append(j.first, next)
	return &Grammar{segments: j}
}

// CheckJoin makes sure that segments can be joined: the numbers of rules are limited.
func CheckJoin(list []*Segment) error {
	rules, symbols := uint64(1), uint64(len(list))
	for _, s := range list {
		rules, symbols = rules+s.size.Rules, symbols+s.size.Symbols
	}
	if rules > math.MaxInt32 || symbols > 1<<40 {
		return fmt.Errorf("segments of %d rules", rules)
	}
	return nil
}

// InMemory returns a grammar that equals g and is of no segments: g itself where that is so.
func (g *Grammar) InMemory() (whole *Grammar, err error) {
	if g.segments == nil {
		return g, nil
	}
	defer Recover(&err)
	bodies := make([][]uint32, g.Rules())
	for r := range bodies {
		bodies[r] = g.Body(r)
	}
	return NewGrammar(bodies)
}
