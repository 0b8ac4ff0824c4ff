package grouped

import (
	"fmt"
	"slices"
	"testing"
)

func TestGrouped(t *testing.T) {
	pairs := [][2]int32{{2, 7}, {0, 5}, {2, -1}, {0, 5}, {3, 9}}
	g := By(5, func(add func(key, value int32)) {
		for _, p := range pairs {
			add(p[0], p[1])
		}
	})
	for key, want := range [][]int32{{5, 5}, {}, {7, -1}, {9}, {}} {
		if got := g.Of(key); !slices.Equal(got, want) || g.Count(key) != len(want) {
			t.Errorf("of %d: %v, %d of them, want %v", key, got, g.Count(key), want)
		}
	}
	if none := By(1, func(func(key, value int32)) {}); none.Count(0) != 0 {
		t.Errorf("of nothing: %v", none.Of(0))
	}
}

func ExampleBy() {
	lists := By(2, func(add func(key, value int32)) {
		add(1, 7)
		add(0, 5)
		add(1, 3)
	})
	fmt.Println(lists.Of(0), lists.Of(1))
	// Output: [5] [7 3]
}
