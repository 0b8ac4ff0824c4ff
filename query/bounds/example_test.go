package bounds_test

import (
	"fmt"

	"wpptrace/query/bounds"
)

// The loop of tables 4 and 5: path 1 was followed by something 500 times, of which 250 times by
// itself, as counts of degree 1 show, and 250 times by path 2 or 3.
func ExampleGroup_Solve() {
	loop := &bounds.Group{
		First:     []uint64{500, 500, 0},
		Second:    []uint64{250, 250, 500},
		Extension: []int{0, 1, 1},
		Counts: []bounds.Count{{First: 0, Extension: 0, N: 250},
			{First: 0, Extension: 1, N: 250}},
	}
	all, err := loop.Solve()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range all {
		fmt.Printf("%d!%d ran %d to %d times\n", b.First+1, b.Second+1, b.Lower, b.Upper)
	}
	// Output:
	// 1!1 ran 250 to 250 times
	// 1!2 ran 0 to 250 times
	// 1!3 ran 0 to 250 times
}
