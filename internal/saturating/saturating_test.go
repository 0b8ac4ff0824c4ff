package saturating_test

import (
	"fmt"
	"math"

	"wpptrace/internal/saturating"
)

func ExampleAdd() {
	fmt.Println(saturating.Add(2, 3), saturating.Add(math.MaxUint64, 1) == math.MaxUint64)
	// Output: 5 true
}

func ExampleMul() {
	fmt.Println(saturating.Mul(2, 3), saturating.Mul(1<<32, 1<<32) == math.MaxUint64)
	// Output: 6 true
}
