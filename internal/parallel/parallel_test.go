package parallel_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"wpptrace/internal/parallel"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1000} {
		turns := make([]atomic.Int32, n)
		parallel.Each(n, func(i int) { turns[i].Add(1) })
		for i := range turns {
			if got := turns[i].Load(); got != 1 {
				t.Errorf("of %d: %d turns with %d, want one", n, got, i)
			}
		}
	}
}

func ExampleEach() {
	squares := make([]int, 5)
	parallel.Each(len(squares), func(i int) { squares[i] = i * i })
	fmt.Println(squares, slices.Max(squares))
	// Output: [0 1 4 9 16] 16
}

func TestPanicsInItsCaller(t *testing.T) {
	panics := func(i int) {
		if i == 0 {
			panic("the first")
		}
	}
	for name, run := range map[string]func(){
		"one turn":  func() { parallel.Each(1, panics) },
		"ten turns": func() { parallel.Each(10, panics) },
		"both":      func() { parallel.Both(func() {}, func() { panics(0) }) },
	} {
		func() {
			defer func() {
				if cause := fmt.Sprint(recover()); !strings.HasPrefix(cause, "the first") ||
					!strings.Contains(cause, "parallel_test.go") {
					t.Errorf("%s: recovered %q, want what a turn panicked with, and where", name,
						cause)
				}
			}()
			run()
			t.Errorf("%s: it returned", name)
		}()
	}
}

func ExampleBoth() {
	var sum, product int
	parallel.Both(func() { sum = 3 + 4 }, func() { product = 3 * 4 })
	fmt.Println(sum, product)
	// Output: 7 12
}
