package wet

import (
	"math/bits"

	"wpptrace/compress/coding"
)

// A field is what a number in a log says.
type field uint8

// The fields. Files depend on their numbers.
const (
	entryBits field = 4 + iota
	entryRegisters
	entryFlags
	entryFS
	recoveryRegisters
	recoveryConfirmed
	loadCode
	resultRegisters
	recoveryIsEmpty
	resultIsEmpty

	entryValue    field = 16 // and 15 more, by register
	recoveryValue field = 32 // and 15 more
	loadWord      field = 48 // and 7 more, of 8 bytes each
	resultValue   field = 56 // and 15 more
	usedValue     field = 72 // and 15 more
	fields        field = 88
)

// A cell is where numbers belong that are alike: an instruction, and what they say there. Two that
// have the same hash are one.
type cell struct {
	of    uint64
	field field
}

func cellOf(at Place, f field) cell {
	return cell{mix(mix(uint64(at.Routine)<<32|uint64(at.Block), uint64(at.Insn)), uint64(f)), f}
}

// mix combines a hash with one more number.
func mix(h, n uint64) uint64 {
	h = (h ^ n) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// A said is a number that a log says.
type said struct {
	in     cell
	number uint64
	// what is known where it is said: of a small one, what it depends on; of another one, a number
	// that it may well be or be near
	about uint64
}

// isSmall reports whether the numbers of a field are mostly 0, and depend on what is known.
func (f field) isSmall() bool {
	return f == loadCode || f == entryBits || f == recoveryIsEmpty || f == resultIsEmpty
}

// work is how long it takes to read a number of the field, as Log.Work has it.
func (f field) work() uint64 {
	if f.isSmall() {
		return 1
	}
	return 16
}

// Kinds of decisions of a transcript.
const (
	expected = iota // a small number is 0
	small           // what it is else
	guessed         // which of the guesses a number is
	sizes           // of what is none of them: bytes
	firsts          // the first of them
	rests           // the others
)

// A transcript codes what a log says, in the order of the walk, or reads it: the same code does
// both, so that they cannot disagree. What is said is predicted by what was said before of the same
// cell, and elsewhere (Zhang and Gupta 2004, section 4: FCM, last n, strides), and by what the walk
// knows there; coding.Choices learn which to believe. It takes 0.1 to 4 MB, by how much is said,
// and some 50 ns for a small number, up to a microsecond for another.
type transcript struct {
	choices *coding.Choices
	cells   []history      // by a hash
	follow  []followed     // the same
	last    [fields]uint64 // of each field
	small   [fields]uint64 // the small ones said last, the last one lowest
	said    [2]uint64      // of any field, the last one first
	size    uint64         // of what was no guess last
}

// A history is what was said of a cell.
type history struct {
	of           uint64
	last, before uint64
	ranks        uint64 // which guesses were right
	size         uint64 // of what was no guess
	n            uint64 // how often something was said: 3 at most
}

// A followed is what was said behind some numbers.
type followed struct{ behind, number uint64 }

// Logarithms of how many histories a transcript has; of what followed there are four times as many.
const leastHistories, mostHistories = 6, 14

// tableSize is what coding is to make tables for, where so many numbers are said: most are small,
// and of few contexts, and what fits in the cache is read sooner. Those of a segment fit.
func tableSize(numbers int) uint64 { return uint64(numbers) / 16 }

// newTranscript makes the transcript of so many numbers.
func newTranscript(c *coding.Choices, numbers int) *transcript {
	n := min(max(bits.Len(uint(numbers))-1, leastHistories), mostHistories)
	return &transcript{choices: c, cells: make([]history, 1<<n), follow: make([]followed, 4<<n)}
}

// history is that of a cell. Where two are in the same place, that of the other one is lost.
func (t *transcript) history(of uint64) *history {
	h := &t.cells[of>>8&uint64(len(t.cells)-1)]
	if h.of != of {
		*h = history{of: of}
	}
	return h
}

// behind is what was said behind some numbers last, another number where that is not known.
func (t *transcript) behind(numbers, another uint64) (number uint64, known bool) {
	f := &t.follow[numbers>>8&uint64(len(t.follow)-1)]
	if f.behind != numbers {
		return another, false
	}
	return f.number, true
}

// learn says what was said behind some numbers.
func (t *transcript) learn(numbers, number uint64) {
	t.follow[numbers>>8&uint64(len(t.follow)-1)] = followed{numbers, number}
}

// code codes a number. It returns it: the one given when it writes, the one read when it reads.
func (t *transcript) code(s said) uint64 {
	if s.in.field.isSmall() {
		return t.codeSmall(s)
	}
	return t.codeNumber(s)
}

func (t *transcript) codeSmall(s said) uint64 {
	f := uint64(s.in.field)<<32 | s.about
	recent := &t.small[s.in.field]
	t.choices.In([coding.Contexts]uint64{f, mix(s.in.of, s.about),
		mix(mix(s.in.of, f), 1+*recent&0xfff)})
	n := uint64(t.choices.Symbol(expected, 1, uint32(min(s.number, 1))))
	if n != 0 {
		switch s.in.field {
		case loadCode:
			n += uint64(t.choices.Behind(small, 3, 2, uint32(s.number-1)))
		case entryBits:
			high := uint64(t.choices.Behind(small, 3, 3, uint32(s.number>>4)))
			t.choices.In([coding.Contexts]uint64{f | 1<<17 | high<<18, mix(mix(s.in.of, high), 2),
				mix(mix(f, high), *recent)})
			n = high<<4 | uint64(t.choices.Symbol(small, 4, uint32(s.number&15)))
		}
	}
	*recent = *recent<<3 | min(n, 7)
	return n
}

// How many guesses there are of a number. That none of them is right is one more.
const (
	guesses   = 1<<guessBits - 1
	guessBits = 3
)

func (t *transcript) codeNumber(s said) uint64 {
	h := t.history(s.in.of)
	f, known := uint64(s.in.field), h.n
	ofCell, ofField := mix(mix(s.in.of, h.last), h.before), mix(mix(f, t.said[0]), t.said[1])
	next, met := t.behind(ofCell, h.last)
	if met {
		known = 4
	}
	anywhere, _ := t.behind(ofField, 0)
	of := [guesses]uint64{next, h.last, 2*h.last - h.before, s.about, t.last[f], anywhere, 0}
	rank := guesses
	same := uint64(0) // which of the guesses are the same says much
	for i := guesses - 1; i >= 0; i-- {
		if of[i] == s.number {
			rank = i
		}
		if i > 0 && of[i] == of[0] {
			same |= 1 << i
		}
	}
	t.choices.In([coding.Contexts]uint64{
		f | known<<8 | same<<16 | h.ranks&7<<24,
		mix(mix(s.in.of, h.ranks&0x3f), 1+known),
		mix(mix(mix(s.in.of, h.last), same), 2)})
	var number uint64
	if none := t.choices.Symbol(guessed, 1, uint32(rank/guesses)); none != 0 {
		rank, number = guesses, t.word(s, h)
	} else {
		rank = min(int(t.choices.Behind(guessed, 2, guessBits, uint32(rank))), guesses-1)
		number = of[rank]
	}
	t.learn(ofCell, number)
	t.learn(ofField, number)
	h.before, h.last = h.last, number
	h.ranks = h.ranks<<guessBits | uint64(rank)
	h.n = min(h.n+1, 3)
	t.last[f], t.said = number, [2]uint64{number, t.said[0]}
	return number
}

// bases is how many numbers another one may be said by.
const (
	bases    = 1 << baseBits
	baseBits = 2
)

// word codes a number that is no guess: one that is near to it, and the bytes from the first on in
// which it differs from that.
func (t *transcript) word(s said, h *history) uint64 {
	near := [bases]uint64{h.last, t.last[s.in.field], s.about, t.said[0]}
	base, size := t.shape(s, h, &near)
	from := near[base]
	t.size, h.size = size, size<<baseBits|base
	got := from >> (8 * size) << (8 * size) // of a shift by 64 nothing is left
	kind := firsts
	for i := int(size) - 1; i >= 0; i-- {
		got |= t.octet(kind, s, i, byte(s.number>>(8*i)), got, from) << (8 * i)
		kind = rests
	}
	return got
}

// shape codes which number another one is said by, and how many bytes from the first on differ:
// mostly as of what the cell said last.
func (t *transcript) shape(s said, h *history, near *[bases]uint64) (base, size uint64) {
	least := 9
	for i, b := range near {
		if n := bytesOf(s.number ^ b); n < least {
			base, least = uint64(i), n
		}
	}
	f := uint64(s.in.field)
	t.choices.In([coding.Contexts]uint64{
		f<<8 | min(h.n, 1)<<4 | 1<<16, mix(mix(s.in.of, h.size), 7), mix(mix(f, t.size), 8)})
	differs := uint32(min(h.size^(uint64(least)<<baseBits|base), 1))
	if t.choices.Symbol(sizes, 1, differs) == 0 {
		return h.size & (bases - 1), h.size >> baseBits
	}
	base = uint64(t.choices.Behind(sizes, 3, baseBits, uint32(base)))
	from := near[base]
	t.choices.In([coding.Contexts]uint64{
		f<<8 | t.size<<4 | base, mix(mix(s.in.of, h.size), 3), mix(mix(f, from), 4)})
	return base, uint64(min(8, t.choices.Symbol(sizes, 4, uint32(bytesOf(s.number^from)))))
}

// bytesOf is how many bytes a number has without leading zeros.
func bytesOf(n uint64) int { return (bits.Len64(n) + 7) >> 3 }

// octet codes the byte of a number, by that of the base, or behind those above it: what was said
// elsewhere and is said again, as the hash of a name is, goes on as it did there.
func (t *transcript) octet(kind int, s said, number int, b byte, above, base uint64) uint64 {
	about := uint64(number) | t.size<<4 | uint64(s.in.field)<<8
	above = above >> (8 * number) >> 8
	nibble := func(done uint64, symbol byte) uint64 {
		ofBytes := mix(mix(uint64(number), done), above)
		t.choices.In([coding.Contexts]uint64{
			mix(mix(about, done), base>>(8*number)&0xff),
			mix(ofBytes, 5),
			mix(mix(ofBytes, s.in.of), 6)})
		return uint64(t.choices.Symbol(kind, 4, uint32(symbol)))
	}
	high := nibble(0, b>>4)
	return high<<4 | nibble(1|high<<1, b&15)
}
