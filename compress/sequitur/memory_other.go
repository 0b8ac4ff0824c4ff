//go:build !linux

package sequitur

// resize returns a slice of n elements, at least as many as s has, that begins with those of s, and
// zeros behind them.
func resize[T node | uint64](s []T, n int) []T {
	bigger := make([]T, n)
	copy(bigger, s)
	return bigger
}

// allocate returns n zeros.
func allocate[T node | uint64](n int) []T { return make([]T, n) }

// release gives the memory of a slice back.
func release[T node | uint64]([]T) {}
