package overlapped

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A Program says what symbols stand for, and the shapes of routines. Each is asked for once.
type Program interface {
	// Symbol returns a path of a routine.
	Symbol(routine int, path uint64) (wpp.Symbol, error)
	// Shape returns the shape of a routine.
	Shape(routine int) (*Shape, error)
}

// A Counter counts overlapping paths, of any number of threads that take turns. It belongs to one
// goroutine. What it counts costs a look-up where the path went on otherwise than the last time,
// and memory of some 60 bytes for each overlapping path that ran.
type Counter struct {
	*Pairs
	degree     int
	program    Program
	shapes     map[int]*Shape
	extensions []Extension
	known      map[string]uint32 // extensions
	after      []uint32          // by symbol: the extension that its path begins with
	pairs      map[[2]uint32]uint32
	counts     []Count
	last       []latest // by symbol
	uncounted  map[uint32]bool
	err        error
}

// latest is how a path went on the last time, and where that is counted, plus one; 0: it has not.
type latest struct{ extension, count uint32 }

// mostPairs is how many different overlapping paths are counted. Of a path that would need more, it
// is said that not all are.
const mostPairs = 1 << 24

// NewCounter returns a counter of overlapping paths of degree k, at least 0, in the symbols of an
// alphabet, which may be shared.
func NewCounter(k int, alphabet *ops.Symbols, p Program) *Counter {
	c := &Counter{degree: k, program: p, shapes: map[int]*Shape{}, known: map[string]uint32{},
		pairs: map[[2]uint32]uint32{}, uncounted: map[uint32]bool{}}
	c.Pairs = NewPairs(alphabet, c.describe, c.count)
	return c
}

func (c *Counter) describe(sym uint32) Path {
	m := c.alphabet.Meaning(sym)
	s, err := c.program.Symbol(m.Routine, m.Path)
	if err != nil || s.Start == ops.StartResume || s.End == ops.EndCut || len(s.Blocks) == 0 {
		c.err = cmp.Or(c.err, err)
		return Path{Routine: m.Routine, Start: s.Start, End: s.End, Callee: -1}
	}
	shape, err := c.shape(m.Routine)
	if err != nil {
		c.err = cmp.Or(c.err, err)
		return Path{Routine: m.Routine, Start: s.Start, End: s.End, Callee: -1}
	}
	p := Path{Routine: m.Routine, Start: s.Start, End: s.End, Whole: true,
		Callee: shape.Callee(s.Blocks[len(s.Blocks)-1])}
	x := Extension{Routine: m.Routine, Loop: -1, Blocks: s.Blocks}
	if s.Start == ops.StartLoop {
		x.Loop = shape.LoopAt(s.Blocks[0])
		if x.Loop < 0 || shape.Loops[x.Loop].LeftOut != "" {
			p.LeftOut = true
			return p
		}
		x.Blocks = shape.Loops[x.Loop].After(x.Blocks)
	}
	x.Blocks = shape.Extend(x.Blocks, c.degree)
	if n := int(sym) + 1 - len(c.after); n > 0 {
		c.after = append(c.after, make([]uint32, n)...)
	}
	c.after[sym] = c.extension(x)
	return p
}

func (c *Counter) shape(routine int) (*Shape, error) {
	if s := c.shapes[routine]; s != nil {
		return s, nil
	}
	s, err := c.program.Shape(routine)
	if err == nil {
		c.shapes[routine] = s
	}
	return s, err
}

// extension returns the index of an extension.
func (c *Counter) extension(x Extension) uint32 {
	key := x.key()
	i, ok := c.known[key]
	if !ok {
		i = uint32(len(c.extensions))
		c.known[key] = i
		x.Blocks = slices.Clone(x.Blocks)
		c.extensions = append(c.extensions, x)
	}
	return i
}

func (c *Counter) count(_ Kind, p, q uint32, times uint64) {
	x := c.after[q]
	if int(p) >= len(c.last) {
		c.last = append(c.last, make([]latest, c.alphabet.Len()-len(c.last))...)
	}
	at := &c.last[p]
	if at.count == 0 || at.extension != x {
		n, ok := c.pairs[[2]uint32{p, x}]
		if !ok {
			if len(c.counts) == mostPairs {
				c.uncounted[p] = true
				return
			}
			n = uint32(len(c.counts))
			c.pairs[[2]uint32{p, x}] = n
			c.counts = append(c.counts, Count{Path: p, Extension: int(x)})
		}
		*at = latest{x, n + 1}
	}
	count := &c.counts[at.count-1]
	count.N = saturating.Add(count.N, times)
}

// Profile copies what has been counted so far. It fails if the program did not say what that was.
func (c *Counter) Profile() (*Profile, error) {
	if c.err != nil {
		return nil, fmt.Errorf("count overlapping paths: %w", c.err)
	}
	p := &Profile{Degree: c.degree, Extensions: slices.Clip(c.extensions),
		Counts: slices.Clone(c.counts), Broken: c.Broken}
	for _, s := range c.shapes {
		p.Shapes = append(p.Shapes, *s)
	}
	for sym := range c.uncounted {
		p.Uncounted = append(p.Uncounted, sym)
	}
	p.sort()
	return p, nil
}
