package forest

// NewCounted makes the forest of terminals of which it is known how often each occurs, by terminal,
// and not in which order: nothing follows anything. Time and memory are linear in the terminals.
func NewCounted(counts []uint64) *Forest {
	var c counted
	for v, n := range counts {
		if n > 0 {
			c.terminals, c.counts = append(c.terminals, uint32(v)), append(c.counts, n)
		}
	}
	return &Forest{symbols: len(counts), whole: newPiece(len(counts), []rules{&c})}
}

// A counted terminal is a rule of its own that no other one uses, derived as often as it occurs.
type counted struct {
	terminals []uint32
	counts    []uint64
}

func (c *counted) Rules() int { return len(c.terminals) }

func (c *counted) Body(rule int) []uint32 { return c.terminals[rule : rule+1] }

func (c *counted) Order() []int {
	order := make([]int, len(c.terminals))
	for r := range order {
		order[r] = r
	}
	return order
}

func (c *counted) Length(int) uint64 { return 1 }

func (c *counted) Uses(rule int) uint64 { return c.counts[rule] }

func (c *counted) BodySymbols() int { return len(c.terminals) }
