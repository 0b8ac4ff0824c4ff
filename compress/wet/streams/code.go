package streams

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"wpptrace/compress/coding"
)

// Append appends a set of streams to coded, in their order. It takes 0.1 to 10 microseconds a
// value.
func Append(coded []byte, streams ...[]uint64) []byte {
	values := uint64(0)
	for _, s := range streams {
		if !isConstant(s) {
			values += uint64(len(s))
		}
	}
	coded = binary.AppendUvarint(coded, uint64(len(streams)))
	coded = binary.AppendUvarint(coded, values)
	w := coding.NewWriter(coded, values)
	h := headers{choices: w}
	for _, s := range streams {
		h.length(uint64(len(s)))
		if len(s) == 0 {
			continue
		}
		if isConstant(s) {
			h.method(constant)
			newTranscript(w, 0, 1).code(s[0])
			continue
		}
		m := h.method(choose(s))
		t := newTranscript(w, m, len(s))
		for _, v := range s {
			t.code(v)
		}
	}
	return w.Finish()
}

// leastConstant is how many values a stream has at least that is stored as one of them: there are
// many such streams, and some are long.
const leastConstant = 8

func isConstant(values []uint64) bool {
	return len(values) >= leastConstant &&
		!slices.ContainsFunc(values, func(v uint64) bool { return v != values[0] })
}

var (
	errShort = errors.New("set of streams ends too early")
	errLong  = errors.New("set of streams goes on behind its end")
)

// Open reads what Append wrote. The cursors are at the beginnings of the streams. It refuses a set
// of more streams or values than most before it spends memory on them: some 200 bytes a stream, and
// a bit to 35 bytes a value. A stream of one value that repeats counts as none: it may have any
// length.
func Open(coded []byte, most uint64) ([]*Cursor, error) {
	streams, n := binary.Uvarint(coded)
	if n <= 0 {
		return nil, errShort
	}
	coded = coded[n:]
	values, n := binary.Uvarint(coded)
	switch {
	case n <= 0:
		return nil, errShort
	case streams > most || values > most:
		return nil, fmt.Errorf("set of streams declares %d streams and %d values, more than %d",
			streams, values, most)
	}
	r := coding.NewReader(coded[n:], values)
	cursors, err := read(r, streams, values)
	if rest := r.Close(); err == nil && rest > 0 {
		err = errLong
	}
	if err != nil {
		return nil, err
	}
	return cursors, nil
}

func read(r *coding.Choices, streams, left uint64) ([]*Cursor, error) {
	var cursors []*Cursor
	h := headers{choices: r}
	for range streams {
		length := h.length(0)
		c := &Cursor{form: methods[0].form(0), len: length}
		if length > 0 && !r.Short() {
			switch m := h.method(0); {
			case r.Short():
			case m == constant:
				c.form = same(newTranscript(r, 0, 1).code(0))
			case m > constant:
				return nil, fmt.Errorf("stream is of method %d of %d", m, constant+1)
			case length > left:
				return nil, errors.New("set of streams has more values than it declares")
			default:
				left -= length
				c.form = newTranscript(r, m, int(length)).read(int(length))
				c.at = length
			}
		}
		if r.Short() {
			return nil, errShort
		}
		c.Seek(0)
		cursors = append(cursors, c)
	}
	if left > 0 {
		return nil, errors.New("set of streams has fewer values than it declares")
	}
	return cursors, nil
}

// beginning is how many values of a stream say how many of all are not predicted.
const beginning = 1 << 16

// read reads so many values into a form, fewer if they are short.
func (t *transcript) read(length int) form {
	values := make([]uint64, 0, min(length, 1<<10))
	for i := 0; i < min(length, beginning) && !t.choices.Short(); i++ {
		values = append(values, t.code(0))
	}
	f := methods[t.method].form(t.missed)
	for _, v := range values {
		f.add(v)
	}
	for i := beginning; i < length && !t.choices.Short(); i++ {
		f.add(t.code(0))
	}
	return f
}

// Kinds of decisions.
const (
	lengths = iota
	numbers // of methods
	guesses // the rank of what was predicted, or that it is not
	sizes   // of what is not predicted: bytes
	firsts  // the first of them
	rests   // the others
)

// headers codes what stands before the values of streams, or reads it. Streams next to each other
// are often alike.
type headers struct {
	choices *coding.Choices
	lengths [2]uint64 // of the streams before
	before  int       // method of the last one
}

func (h *headers) length(n uint64) uint64 {
	n = h.choices.Number(lengths, h.lengths[0], h.lengths[1], n)
	h.lengths[0], h.lengths[1] = n, h.lengths[0]
	return n
}

func (h *headers) method(number int) int {
	size := uint64(bits.Len64(h.lengths[0]))
	h.choices.In([coding.Contexts]uint64{size, 1<<8 | uint64(h.before), 1<<16 | size<<8 |
		uint64(h.before)})
	h.before = int(h.choices.Symbol(numbers, 4, uint32(number)))
	return h.before
}

// A transcript codes the values of one stream, or reads them: the same code does both, so that they
// cannot disagree.
type transcript struct {
	choices   *coding.Choices
	method    uint64
	predictor predictor
	width     int // of a rank, in bits
	strides   bool

	last   uint64    // value
	words  [2]uint64 // coded last: values or strides
	ranks  uint64    // of those that were coded last
	size   uint64    // of the word that was missed last
	missed int       // words
	n      int       // words coded
}

func newTranscript(c *coding.Choices, number, values int) *transcript {
	m := methods[number]
	p := m.predictor(values)
	return &transcript{choices: c, method: uint64(number), predictor: p, strides: m.strides,
		width: bits.Len(uint(p.ranks())), size: 15}
}

// code codes a value. It returns it: the one given when it writes, the one read when it reads.
func (t *transcript) code(value uint64) uint64 {
	word := value
	if t.strides {
		word -= t.last
	}
	rank := t.predictor.rank(word)
	t.n++
	t.choices.In([coding.Contexts]uint64{
		mix(t.method, t.ranks&0xff|uint64(min(t.n, 2))<<8),
		mix(mix(t.method, 1), t.words[0]),
		mix(mix(mix(t.method, 2), t.words[0]), t.words[1])})
	rank = int(t.choices.Symbol(guesses, t.width, uint32(rank)))
	if rank < t.predictor.ranks() {
		word = t.predictor.value(rank)
	} else {
		word = t.word(word)
		t.missed++
	}
	t.predictor.use(rank, word)
	t.ranks = t.ranks<<t.width | uint64(rank)
	t.words[0], t.words[1] = word, t.words[0]
	if t.strides {
		word += t.last
	}
	t.last = word
	return word
}

// word codes a word that was not predicted: of a value, the bytes from the first on in which it
// differs from the one before; of a stride, what it has without leading zeros, up or down.
func (t *transcript) word(word uint64) uint64 {
	before := t.words[0]
	far := far(t.strides, word, before)
	t.choices.In([coding.Contexts]uint64{
		mix(t.method, t.size), mix(mix(t.method, 3), before),
		mix(mix(mix(t.method, 4), before), t.words[1])})
	size := uint32(bits.Len64(far)+7) >> 3
	size = min(8, t.choices.Symbol(sizes, 4, size))
	t.size = uint64(size)
	coded := far
	if !t.strides {
		coded = word
	}
	got := uint64(0)
	if !t.strides {
		got = before >> (8 * size) << (8 * size) // of a shift by 64 nothing is left
	}
	kind := firsts
	for i := int(size) - 1; i >= 0; i-- {
		got |= t.octet(kind, i, byte(coded>>(8*i)), got) << (8 * i)
		kind = rests
	}
	if t.strides {
		return got>>1 ^ -(got & 1)
	}
	return got
}

// far is how far a word is from the one before: of strides, which are small themselves, from 0.
func far(strides bool, word, before uint64) uint64 {
	if strides {
		return word<<1 ^ uint64(int64(word)>>63)
	}
	return word ^ before
}

// octet codes the byte of a number, behind those above it.
func (t *transcript) octet(kind, number int, b byte, above uint64) uint64 {
	about := uint64(number) | uint64(t.size)<<4
	above = above >> (8 * number) >> 8
	before := t.words[0] >> (8 * number) & 0xff
	nibble := func(done uint64, symbol byte) uint64 {
		t.choices.In([coding.Contexts]uint64{
			about | done<<8,
			mix(mix(about, done), before|above&0xff<<8),
			mix(mix(mix(mix(about, done), above), t.words[0]), t.words[1])})
		return uint64(t.choices.Symbol(kind, 4, uint32(symbol)))
	}
	high := nibble(0, b>>4)
	return high<<4 | nibble(1|high<<1, b&15)
}

// How many values of a stream are tried, and how many are guessed of. Of few values the guess alone
// decides.
const (
	few   = 1 << 7
	trial = 1 << 9
	guess = 1 << 14
)

// choose returns the method that takes the fewest bytes, as far as is tried: of each kind, the size
// of context that is the best by a guess, and then, of the kind that is the best, each size. Parts
// of the stream are tried (section 4, "Selection", tries the beginning alone: what comes behind it
// may be quite different).
func choose(values []uint64) int {
	some := parts(values, guess)
	var guesses []float64
	for _, m := range methods {
		guesses = append(guesses, guessed(m, some))
	}
	if len(values) < few {
		return best(len(methods), func(m int) float64 { return guesses[m] })
	}
	some = parts(values, trial)
	kind := best(len(methods)/contexts, func(kind int) float64 {
		of := guesses[kind*contexts:][:contexts]
		return float64(cost(kind*contexts+slices.Index(of, slices.Min(of)), some))
	})
	some = parts(values, 4*trial)
	return kind*contexts + best(contexts, func(size int) float64 {
		return float64(cost(kind*contexts+size, some))
	})
}

// best is the number below n whose cost is the least.
func best(n int, cost func(int) float64) (is int) {
	least := math.Inf(1)
	for i := range n {
		if c := cost(i); c < least {
			is, least = i, c
		}
	}
	return is
}

// parts returns n values of a stream, or all that it has: eight parts, as far apart as may be.
func parts(values []uint64, n int) []uint64 {
	const count = 8
	if n >= len(values) {
		return values
	}
	var some []uint64
	for i := range count {
		at := (len(values) - n/count) * i / (count - 1)
		some = append(some, values[at:at+n/count]...)
	}
	return some
}

// guessed is about how many bits a method takes for a stream: what its ranks take if each comes as
// often as it does, and whole bytes of what is not predicted. It takes some ns a value.
func guessed(m method, values []uint64) (sum float64) {
	p := m.predictor(len(values))
	var ranks [mostLast + 1]int
	last, before := uint64(0), uint64(0)
	for _, v := range values {
		word := v
		if m.strides {
			word -= last
		}
		rank := p.rank(word)
		ranks[rank]++
		if rank == p.ranks() {
			sum += 3 + 8*float64(uint(bits.Len64(far(m.strides, word, before))+7)>>3)
		}
		p.use(rank, word)
		last, before = v, word
	}
	for _, n := range ranks {
		if n > 0 {
			sum += float64(n) * math.Log2(float64(len(values))/float64(n))
		}
	}
	return sum
}

// cost is how many bytes a method takes for a stream.
func cost(method int, values []uint64) int {
	w := coding.NewWriter(nil, uint64(len(values)))
	t := newTranscript(w, method, len(values))
	for _, v := range values {
		t.code(v)
	}
	return len(w.Finish())
}
