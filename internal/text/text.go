// Package text writes the small words that numbers need.
package text

import (
	"fmt"
	"strings"
)

// Count is a number with its noun, in the plural but for one: "1 path", "2 paths".
func Count[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Factor writes a number without digits that mean nothing.
func Factor(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

// Share writes a share as a percentage of three digits.
func Share(share float64) string {
	const exponential = 9.995 // with three digits
	if share >= exponential {
		return fmt.Sprintf("%.0f%%", 100*share)
	}
	return fmt.Sprintf("%.3g%%", 100*share)
}

// Short writes a number in four characters or so.
func Short(n float64) string {
	for _, unit := range []string{"", "k", "M", "G"} {
		if n < 1000 {
			if unit == "" || n >= 100 {
				return fmt.Sprintf("%.0f%s", n, unit)
			}
			return fmt.Sprintf("%.1f%s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0fT", n)
}
