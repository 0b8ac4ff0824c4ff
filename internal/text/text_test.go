package text_test

import (
	"fmt"
	"testing"

	"wpptrace/internal/text"
)

func ExampleCount() {
	fmt.Println(text.Count(1, "path"), text.Count(uint64(0), "gap"))
	// Output: 1 path 0 gaps
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1.0k", 12345: "12.3k",
		123456: "123k", 2.5e6: "2.5M", 7e9: "7.0G", 3e12: "3T"} {
		if got := text.Short(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

// TestShare: three digits, and no exponent however many times something is.
func TestShare(t *testing.T) {
	for share, want := range map[float64]string{0: "0%", 0.00012345: "0.0123%", 0.5: "50%",
		9.99: "999%", 9.996: "1000%", 50: "5000%"} {
		if got := text.Share(share); got != want {
			t.Errorf("%v: %s, want %s", share, got, want)
		}
	}
}
