//go:build !linux

package sequitur

// room is how many elements to make room for where n are needed: little is ever empty.
func room(n int) int { return n + n/6 + 64 }

// resize returns a slice of n elements that begins with those of s, and zeros behind them.
func resize[T node | uint64](s []T, n int) []T {
	bigger := make([]T, n)
	copy(bigger, s)
	return bigger
}

// allocate returns n zeros.
func allocate[T node | uint64](n int) []T { return make([]T, n) }

// release gives the memory of a slice back.
func release[T node | uint64]([]T) {}
