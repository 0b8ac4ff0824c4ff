package forest

import (
	"math"

	"wpptrace/compress/wpp"
	"wpptrace/query/internal/matcher"
)

// A Reader sees all strings of up to margin+1 symbols that a forest derives, without expanding it:
// the boundaries of each rule.
type Reader interface {
	// Begin says that what is pushed next, of the expansion of a rule, does not follow what was
	// pushed before. It occurs weight times.
	Begin(weight uint64)
	// Push says that the last terminal of the line was added. Up to margin+1 terminals before it
	// are there yet, but only those pushed since Begin count. The line may not be kept. The last
	// inside terminals, if any, come from one symbol of the rule that is read: the reader has seen
	// what they hold, when it read the rule that this symbol names. AllInside says so of all since
	// Begin.
	Push(line []Terminal, inside int)
}

// AllInside is more than there are terminals: see Reader.Push.
const AllInside = math.MaxInt

// A Terminal is a symbol of a rule's expansion.
type Terminal struct {
	Symbol uint32
	rank   uint32 // a ranker's; it begins as matcher.None
}

// A ranker is a reader that may change the ranks of the line.
type ranker interface {
	Reader
	// settle hands out terminals that are more than margin away from both edges of a rule's
	// expansion, whose ranks no rule above can change, once for all derivations of the rule, of
	// which there are weight.
	settle(weight uint64, terminals []Terminal)
}

// boundaries reads a forest from the rules that use no others upwards. What crosses into a rule
// from outside reaches at most margin symbols into it; so of each rule only the edges are kept for
// the rules above: its whole expansion, or its first and last margin terminals where it has more
// than both.
type boundaries struct {
	reader Reader
	ranker ranker // the same, if it is one
	margin int
	// of the rule being read: its first margin terminals, then those not settled yet
	line []Terminal
}

// Read has a reader see all strings of up to margin+1 symbols. It takes time and memory in
// proportion to the right-hand sides times margin+1, the reader's own apart; memory to those of one
// piece.
func (f *Forest) Read(margin int, r Reader) {
	b := &boundaries{reader: r, margin: margin}
	b.ranker, _ = r.(ranker)
	Upwards(f, b.read)
}

// isWide reports whether the middle of an expansion so long is left out of a rule's edges.
func (b *boundaries) isWide(length uint64) bool { return length > 2*uint64(b.margin) }

func (b *boundaries) read(r *Rule[[]Terminal]) (edges []Terminal) {
	b.line = b.line[:0]
	b.reader.Begin(r.Derived)
	for _, v := range r.Body {
		if !wpp.IsRule(v) {
			b.push(Terminal{v, matcher.None}, 0)
		} else if edges := r.Take(v); b.isWide(r.width(v)) {
			b.pushAll(edges[:b.margin])
			b.settle(r, len(b.line))
			b.reader.Begin(r.Derived)
			for _, x := range edges[b.margin:] {
				b.push(x, AllInside)
			}
		} else {
			b.pushAll(edges)
		}
		if len(b.line) > 4*b.margin+1024 {
			b.settle(r, len(b.line)-b.margin-1)
		}
	}
	switch {
	case r.IsTop:
		b.settle(r, len(b.line))
		return nil
	case b.isWide(r.length):
		b.settle(r, len(b.line)-b.margin)
	}
	return append([]Terminal(nil), b.line...)
}

func (b *boundaries) push(x Terminal, inside int) {
	b.line = append(b.line, x)
	b.reader.Push(b.line, inside)
}

// pushAll pushes the beginning of a symbol's expansion.
func (b *boundaries) pushAll(terminals []Terminal) {
	for i, x := range terminals {
		b.push(x, i+1)
	}
}

// settle hands out the line's terminals up to end, but for the first margin ones, and drops them.
func (b *boundaries) settle(r *Rule[[]Terminal], end int) {
	begin := min(b.margin, end)
	if r.IsTop {
		begin = 0 // no rule is above a start rule
	}
	if b.ranker != nil {
		b.ranker.settle(r.Derived, b.line[begin:end])
	}
	b.line = append(b.line[:begin], b.line[end:]...)
}
