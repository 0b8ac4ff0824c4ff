package planner

import (
	"slices"
	"testing"
)

// Blocks that lie in memory against the order in which they run took a time by the square of their
// number.
func TestSetIsExtendedInLinearTime(t *testing.T) {
	const blocks = 1000
	for name, next := range map[string]func(b int) int{
		"forward":  func(b int) int { return b + 1 },
		"backward": func(b int) int { return b - 1 },
		"in leaps": func(b int) int { return b + 7 },
	} {
		set, want, looks := make(blockSet, blocks), make(blockSet, blocks), 0
		set[blocks/2] = true
		for b := range want {
			for n := b; n >= 0 && n < blocks && !want[b]; n = next(n) {
				want[b] = n == blocks/2
			}
		}
		set.extend(func(b int) []int {
			looks++
			if n := next(b); n >= 0 && n < blocks {
				return []int{n}
			}
			return []int{exit}
		})
		if !slices.Equal(set, want) || looks > 3*blocks {
			t.Errorf("%s: %v after %d looks, want %v", name, set, looks, want)
		}
	}
}
