package overlapped

import (
	"cmp"
	"fmt"
	"slices"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/internal/saturating"
)

// A Program says what symbols stand for, and the shapes of routines. Each is asked for once, by the
// goroutine of the Counter.
type Program interface {
	// Symbol returns a path of a routine, with the routine.
	Symbol(routine int, path uint64) (wpp.Symbol, error)
	// Shape returns the shape of a routine.
	Shape(routine int) (*Shape, error)
}

// A Counter counts overlapping paths, of any number of threads that take turns. It belongs to one
// goroutine. What it counts costs a look-up, and some 32 bytes for each overlapping path that ran.
type Counter struct {
	*Pairs
	degree     int
	program    Program
	shapes     map[int]*Shape
	extensions []Extension
	indexOf    map[string]uint32 // of extensions, by key
	after      []uint32          // by symbol: the extension that its path begins with
	slots      []uint32          // where an overlapping path is counted, plus one; 0: nothing is
	shift      uint              // a slot's index is the top bits of the hash
	counts     []Count
	most       int // mostPairs
	uncounted  map[uint32]bool
	err        error
}

// mostPairs is how many different overlapping paths are counted. Of a path that would need more, it
// is said that not all are.
const mostPairs = 1 << 22

// NewCounter returns a counter of overlapping paths of degree k, at least 0, in the symbols of an
// alphabet, which may be shared.
func NewCounter(k int, alphabet *ops.Symbols, p Program) *Counter {
	c := &Counter{degree: k, program: p, shapes: map[int]*Shape{}, indexOf: map[string]uint32{},
		slots: make([]uint32, 64), shift: 64 - 6, most: mostPairs, uncounted: map[uint32]bool{}}
	c.Pairs = NewPairs(alphabet, c.describe, c.count)
	return c
}

func (c *Counter) describe(sym uint32) Path {
	m := c.alphabet.Meaning(sym)
	y, err := c.program.Symbol(m.Routine, m.Path)
	var shape *Shape
	if err == nil && IsWhole(&y) {
		shape, err = c.shape(m.Routine)
	}
	if err != nil {
		c.err, shape = cmp.Or(c.err, err), nil
	}
	p := PathOf(&y, shape)
	if !p.Whole || p.LeftOut {
		return p
	}
	x := shape.ExtensionOf(&y)
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
	i, ok := c.indexOf[key]
	if !ok {
		i = uint32(len(c.extensions))
		c.indexOf[key] = i
		x.Blocks = slices.Clone(x.Blocks)
		c.extensions = append(c.extensions, x)
	}
	return i
}

func (c *Counter) count(_ Kind, p, q uint32, times uint64) {
	x := c.after[q]
	slot := c.slot(p, x)
	at := c.slots[slot]
	if at == 0 {
		if len(c.counts) == c.most {
			c.uncounted[p] = true
			return
		}
		c.counts = append(c.counts, Count{Path: p, Extension: int(x)})
		at = uint32(len(c.counts))
		c.slots[slot] = at
		if 8*len(c.counts) > 5*len(c.slots) {
			c.grow()
		}
	}
	count := &c.counts[at-1]
	count.N = saturating.Add(count.N, times)
}

// slot returns the slot of an overlapping path, or the empty one that it would have.
func (c *Counter) slot(p, x uint32) uint64 {
	h := (uint64(p)<<32 | uint64(x)) * 0x9E3779B97F4A7C15
	h ^= h >> 32
	h *= 0xBF58476D1CE4E5B9
	mask := uint64(len(c.slots) - 1)
	for i := h >> c.shift; ; i = (i + 1) & mask {
		n := c.slots[i]
		if n == 0 || c.counts[n-1].Path == p && c.counts[n-1].Extension == int(x) {
			return i
		}
	}
}

func (c *Counter) grow() {
	c.slots = make([]uint32, 2*len(c.slots))
	c.shift--
	for i := range c.counts {
		c.slots[c.slot(c.counts[i].Path, uint32(c.counts[i].Extension))] = uint32(i + 1)
	}
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
