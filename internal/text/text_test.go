package text_test

import (
	"fmt"

	"wpptrace/internal/text"
)

func ExampleCount() {
	fmt.Println(text.Count(1, "path"), text.Count(uint64(0), "gap"))
	// Output: 1 path 0 gaps
}
