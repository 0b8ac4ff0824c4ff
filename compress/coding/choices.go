package coding

import "math/bits"

// Contexts is how many contexts a decision of Choices is in.
const Contexts = contexts

// Kinds is how many kinds of decisions Choices tells apart: it learns for each kind which contexts
// to believe.
const Kinds = int(sets)

// Choices codes decisions of any kind as the decisions of a grammar are coded: each is predicted in
// some contexts, which are mixed, and coded arithmetically. One Choices serves one goroutine. It
// takes 64 KiB to 4 MiB and, for a decision, some 30 ns.
type Choices struct{ mixed predictor }

// NewWriter makes Choices that append to out, for some number of symbols: its memory follows from
// it, and a reader must be given the same.
func NewWriter(out []byte, symbols uint64) *Choices {
	return &Choices{newPredictor(newWriter(out), symbols, contexts)}
}

// NewReader makes Choices that read what a writer of as many symbols wrote.
func NewReader(in []byte, symbols uint64) *Choices {
	return &Choices{newPredictor(newReader(in), symbols, contexts)}
}

// In says in which contexts the next decisions are. Contexts are told apart by their numbers alone.
func (c *Choices) In(contexts [Contexts]uint64) {
	for i, context := range contexts {
		c.mixed.before[i] = hash(context, uint64(i))
	}
	c.mixed.decide(0)
}

// Symbol codes a number of so many bits, 4 at most, a decision a bit, in the contexts given last.
// It returns the number: the one given when it writes, the one read when it reads.
func (c *Choices) Symbol(kind, width int, symbol uint32) uint32 {
	return c.Behind(kind, 1, width, symbol)
}

// Behind is Symbol for a number that depends on others, of the contexts given last, as they were:
// before has a 1, and their bits. Together they have 4 bits at most.
func (c *Choices) Behind(kind int, before uint32, width int, symbol uint32) uint32 {
	node := before
	for i := width - 1; i >= 0; i-- {
		node = node<<1 | c.mixed.code(set(kind), node, symbol>>i&1)
	}
	return node - before<<width
}

// Number codes any number in two contexts, by themselves and together: its length in bits, then its
// bits.
func (c *Choices) Number(kind int, first, second, number uint64) uint64 {
	about := func(what uint64) {
		c.In([Contexts]uint64{what, hash(first, what), hash(hash(first, second), what)})
	}
	about(0)
	length := c.Symbol(kind, 4, uint32(bits.Len64(number))>>3)
	about(1 + uint64(length))
	length = length<<3 | c.Symbol(kind, 3, uint32(bits.Len64(number))&7)
	n := uint64(min(length, 1))
	for left := min(int(length), 64) - 1; left > 0; {
		width := min(left, 4)
		left -= width
		about(hash(n, uint64(length)))
		n = n<<width | uint64(c.Symbol(kind, width, uint32(number>>left)&(1<<width-1)))
	}
	return n
}

// Finish ends a writer and returns what it was given to append to, with all behind it.
func (c *Choices) Finish() []byte {
	out := c.mixed.finish()
	c.mixed.release()
	return out
}

// Short reports whether a reader has read beyond the end: what it read last is then no number that
// anybody wrote.
func (c *Choices) Short() bool { return c.mixed.missing > 0 }

// Close ends a reader and returns how many bytes it has not read.
func (c *Choices) Close() int {
	c.mixed.release()
	return len(c.mixed.in)
}
