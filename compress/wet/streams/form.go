package streams

import "math/bits"

// A form is a stream in memory at one of its places: what a method made of the values before and
// behind that place.
type form interface {
	// next steps over the value behind the place, of which there is one, and returns it.
	next() uint64
	// previous steps back over the value before the place, of which there is one, and returns it.
	previous() uint64
	// add puts a value before the place, which is the stream's end.
	add(value uint64)
}

// same is the form of a stream whose values are all the same.
type same uint64

func (s same) next() uint64     { return uint64(s) }
func (s same) previous() uint64 { return uint64(s) }
func (s same) add(uint64)       {}

// strides is the form of a stream of which a method has the differences between neighbours: the
// first value's from 0.
type strides struct {
	form
	last uint64
}

func (s *strides) next() uint64 {
	s.last += s.form.next()
	return s.last
}

func (s *strides) previous() uint64 {
	value := s.last
	s.last -= s.form.previous()
	return value
}

func (s *strides) add(value uint64) {
	s.form.add(value - s.last)
	s.last = value
}

// fcm is the form of a method that predicts a value by those beside it (figure 5). The place is
// behind a window of values that are not compressed; behind the stream's beginning the window has
// zeros, which extend the stream.
//
// What is before the window is predicted by the values behind it, and what is behind the window by
// the values before it. A table holds what followed a context last. An entry of a value that was
// not predicted has no place for it: the table has it. The entry has what the table had before.
// Figure 6, which shows four states, is lost in the text: TestStatesOfFCM has an example of its
// own.
type fcm struct {
	window        window
	before, after side // FR and FRTB, BL and BLTB
}

// A side is what lies on one side of the window, nearest last.
type side struct {
	table  []uint64
	hits   bitStack
	misses []uint64 // what the table had before
}

func newFCM(context int, slots int) *fcm {
	return &fcm{window: window{size: context},
		before: side{table: make([]uint64, slots)}, after: side{table: make([]uint64, slots)}}
}

func (f *fcm) next() uint64 {
	value := f.after.take(f.window.slot(len(f.after.table)))
	f.add(value)
	return value
}

func (f *fcm) add(value uint64) {
	oldest := f.window.append(value)
	f.before.put(f.window.slot(len(f.before.table)), oldest)
}

func (f *fcm) previous() uint64 {
	oldest := f.before.take(f.window.slot(len(f.before.table)))
	value := f.window.prepend(oldest)
	f.after.put(f.window.slot(len(f.after.table)), value)
	return value
}

func (s *side) put(slot int, value uint64) {
	hit := s.table[slot] == value
	s.hits.push(hit)
	if !hit {
		s.misses = append(s.misses, s.table[slot])
		s.table[slot] = value
	}
}

func (s *side) take(slot int) uint64 {
	value := s.table[slot]
	if !s.hits.pop() {
		last := len(s.misses) - 1
		s.table[slot], s.misses = s.misses[last], s.misses[:last]
	}
	return value
}

// mostContext is the largest context of an fcm, and mostLast that of a last.
const (
	mostContext = 4
	mostLast    = 15
)

// A window is as many values as a context has, the oldest first.
type window struct {
	values [mostContext]uint64
	size   int
}

// append puts a value behind the others and returns the oldest, which it loses.
func (w *window) append(value uint64) uint64 {
	oldest := w.values[0]
	copy(w.values[:w.size-1], w.values[1:w.size])
	w.values[w.size-1] = value
	return oldest
}

// prepend is the inverse of append: it puts a value before the others and returns the newest.
func (w *window) prepend(value uint64) uint64 {
	newest := w.values[w.size-1]
	copy(w.values[1:w.size], w.values[:w.size-1])
	w.values[0] = value
	return newest
}

// hash combines the values.
func (w *window) hash() uint64 {
	h := uint64(0)
	for _, v := range w.values[:w.size] {
		h = mix(h, v)
	}
	return h
}

// slot is the place of the window in a table, whose size is a power of two.
func (w *window) slot(slots int) int { return int(w.hash() & uint64(slots-1)) }

// mix combines a hash with one more value.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// A bitStack is a stack of bits.
type bitStack struct {
	words []uint64
	size  int
}

func (s *bitStack) push(bit bool) {
	if s.size>>6 == len(s.words) {
		s.words = append(s.words, 0)
	}
	mask := uint64(1) << (s.size & 63)
	if bit {
		s.words[s.size>>6] |= mask
	} else {
		s.words[s.size>>6] &^= mask
	}
	s.size++
}

func (s *bitStack) pop() bool {
	s.size--
	return s.words[s.size>>6]>>(s.size&63)&1 == 1
}

// lastN is the form of a method that predicts one of the n different values before the place. One
// table serves both directions (section 4): a value that was in it moves to its front, and back.
// One that was not pushes the last value of the table out, and both change places in the same word:
// so both directions read the same entries. Figure 7 is lost in the text: TestStatesOfLastN has an
// example of its own.
type lastN struct {
	recent recent
	ranks  ranks    // of each value: where it was in the table, or n
	misses []uint64 // the value if behind the place, what it pushed out if before
	at     int      // in ranks
	missed int      // in misses
}

func newLastN(n int) *lastN {
	return &lastN{recent: recent{size: n}, ranks: ranks{width: bits.Len(uint(n))}}
}

func (l *lastN) next() uint64 {
	rank := l.ranks.at(l.at)
	l.at++
	value := l.recent.values[rank]
	if rank == l.recent.size {
		value = l.misses[l.missed]
		l.misses[l.missed] = l.recent.values[rank-1]
		l.missed++
	}
	l.recent.use(rank, value)
	return value
}

func (l *lastN) previous() uint64 {
	l.at--
	rank := l.ranks.at(l.at)
	value := l.recent.values[0]
	was := value
	if rank == l.recent.size {
		l.missed--
		was = l.misses[l.missed]
		l.misses[l.missed] = value
	}
	l.recent.unuse(rank, was)
	return value
}

func (l *lastN) add(value uint64) {
	rank := l.recent.rank(value)
	l.ranks.append(rank)
	if rank == l.recent.size {
		l.misses = append(l.misses, value)
	}
	l.next()
}

// ranks is a list of numbers of some bits each, of which a word holds a whole number.
type ranks struct {
	words []uint64
	width int
	size  int
}

func (r *ranks) append(rank int) {
	bit := r.size * r.width
	if bit>>6 == len(r.words) {
		r.words = append(r.words, 0)
	}
	r.words[bit>>6] |= uint64(rank) << (bit & 63)
	r.size++
}

func (r *ranks) at(i int) int {
	bit := i * r.width
	return int(r.words[bit>>6] >> (bit & 63) & (1<<r.width - 1))
}

// recent is some values, the one that was used last first. There is room for one more behind them.
type recent struct {
	values [mostLast + 1]uint64
	size   int
}

// rank is where a value is, or the size.
func (r *recent) rank(value uint64) int {
	for i, v := range r.values[:r.size] {
		if v == value {
			return i
		}
	}
	return r.size
}

// use moves the value of a rank to the front, or puts a value there that has none: the last value
// goes then.
func (r *recent) use(rank int, value uint64) {
	to := min(rank, r.size-1)
	copy(r.values[1:to+1], r.values[:to])
	r.values[0] = value
}

// unuse is the inverse of use: the value is what was at the rank, or the last one if it had none.
func (r *recent) unuse(rank int, value uint64) {
	to := min(rank, r.size-1)
	copy(r.values[:to], r.values[1:to+1])
	r.values[to] = value
}
