// Package text writes the small words that numbers need.
package text

import "fmt"

// Count is a number with its noun, in the plural but for one: "1 path", "2 paths".
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
