package streams

import "math/bits"

// A method is a way to predict.
type method struct {
	fcm     bool // from the values beside it; else it is one of the last different ones
	strides bool // not values are predicted, but differences between neighbours
	size    int  // of the context
}

// methods are all that there are, by number (section 4). A last n fills the bits of a number with
// its ranks and the one that says that there is none.
var methods = [...]method{
	{fcm: true, size: 1}, {fcm: true, size: 2}, {fcm: true, size: 4},
	{fcm: true, size: 1, strides: true}, {fcm: true, size: 2, strides: true},
	{fcm: true, size: 4, strides: true},
	{size: 1}, {size: 3}, {size: 15},
	{size: 1, strides: true}, {size: 3, strides: true}, {size: 15, strides: true},
}

// constant is the number of what is none of them: all values are the same.
const constant = len(methods)

// contexts is how many methods there are of a kind, one behind the other: sizes of context.
const contexts = 3

// Logarithms of how many slots a table of an fcm has.
const leastSlots, mostSlots = 2, 16

// slots is the size of a table for so many different contexts.
func slots(different int) int {
	return 1 << min(max(bits.Len(uint(different)), leastSlots), mostSlots)
}

// form makes the form of an empty stream: of the values to come, so many are not predicted.
func (m method) form(missed int) form {
	var f form
	if m.fcm {
		f = newFCM(m.size, slots(missed))
	} else {
		f = newLastN(m.size)
	}
	if m.strides {
		f = &strides{form: f}
	}
	return f
}

// predictor makes the predictor of a stream of so many values.
func (m method) predictor(values int) predictor {
	if m.fcm {
		return &follower{window: window{size: m.size}, table: make([]uint64, slots(values))}
	}
	return &recent{size: m.size}
}

// A predictor predicts values in one direction. It gives ranks to some, from 0 on.
type predictor interface {
	ranks() int
	// rank is that of a value, or as many as there are ranks.
	rank(value uint64) int
	value(rank int) uint64
	// use makes a value, which had a rank or none, that of the present.
	use(rank int, value uint64)
}

// A follower predicts what followed the same values before (FCM).
type follower struct {
	window window
	table  []uint64
}

func (f *follower) ranks() int { return 1 }

func (f *follower) rank(value uint64) int {
	if f.value(0) == value {
		return 0
	}
	return 1
}

func (f *follower) value(int) uint64 { return f.table[f.window.slot(len(f.table))] }

func (f *follower) use(_ int, value uint64) {
	f.table[f.window.slot(len(f.table))] = value
	f.window.append(value)
}

func (r *recent) ranks() int { return r.size }

func (r *recent) value(rank int) uint64 { return r.values[rank] }
