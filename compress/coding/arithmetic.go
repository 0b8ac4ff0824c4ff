package coding

// A coder writes or reads binary decisions: an arithmetic coder without carries, whose interval's
// leading bytes are written, or read, as soon as its ends agree on them. One model serves both
// directions, so that they cannot disagree. Behind the end of the bytes it reads zeros and counts
// them: what is made of such is not to be believed.
type coder struct {
	low, high uint32
	reads     bool
	out       []byte // written

	code    uint32
	in      []byte // to be read
	missing int
}

func newWriter(out []byte) *coder { return &coder{high: 1<<32 - 1, out: out} }

func newReader(in []byte) *coder {
	c := &coder{high: 1<<32 - 1, in: in, reads: true}
	for range 4 {
		c.shift()
	}
	return c
}

// bit codes a decision, given the probability of 1 in 65536ths, from 1 to 65535. It returns the
// decision: the one given when it writes, the one read when it reads. The interval from low to high
// is divided in the proportion of the probability: 1 gets what is up to the middle, 0 the rest. It
// branches on the decision, which the processor foretells about as well as the model does, and so
// need not wait for.
func (c *coder) bit(decision, probability uint32) uint32 {
	middle := c.low + uint32(uint64(c.high-c.low)*uint64(probability)>>16)
	is := decision == 1
	if c.reads {
		is = c.code <= middle
	}
	if is {
		decision, c.high = 1, middle
	} else {
		decision, c.low = 0, middle+1
	}
	for (c.low^c.high)>>24 == 0 {
		c.agree()
	}
	return decision
}

// agree writes or reads the byte that the interval's ends agree on.
func (c *coder) agree() {
	if c.reads {
		c.shift()
	} else {
		c.out = append(c.out, byte(c.high>>24))
	}
	c.low <<= 8
	c.high = c.high<<8 | 0xff
}

func (c *coder) shift() {
	c.code <<= 8
	if len(c.in) == 0 {
		c.missing++
		return
	}
	c.code |= uint32(c.in[0])
	c.in = c.in[1:]
}

// finish returns the bytes written, with enough of them at the end to fix the last interval.
func (c *coder) finish() []byte {
	return append(c.out, byte(c.low>>24), byte(c.low>>16), byte(c.low>>8), byte(c.low))
}
