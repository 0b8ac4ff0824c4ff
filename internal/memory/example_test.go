package memory_test

import (
	"fmt"

	"wpptrace/internal/memory"
)

func ExampleSize() {
	var s memory.Size
	err := s.Set("64m")
	fmt.Println(int64(s), s, err)
	// Output: 67108864 64M <nil>
}
