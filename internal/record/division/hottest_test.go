package division

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHottest(t *testing.T) {
	for _, c := range []struct {
		name string
		hits map[int]uint64
		most uint64
		want []int
	}{
		{"none are hit", nil, 0, nil},
		{"all may stay", map[int]uint64{1: 3, 2: 4}, 7, nil},
		{"those hit most go", map[int]uint64{1: 1, 2: 900, 3: 2, 4: 1000}, 3, []int{2, 4}},
		{"none may stay", map[int]uint64{7: 1, 3: 1}, 0, []int{3, 7}},
	} {
		if got := hottest(c.hits, c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// What stays is within the bound, and no smaller number of sites would do.
func TestHottestAreTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hits := rapid.MapOf(rapid.IntRange(0, 50), rapid.Uint64Range(0, 100)).Draw(t, "hits")
		most := rapid.Uint64Range(0, 500).Draw(t, "most")
		hot := hottest(hits, most)
		left, least := uint64(0), ^uint64(0)
		for site, n := range hits {
			if _, isHot := slices.BinarySearch(hot, site); isHot {
				least = min(least, n)
			} else {
				left += n
			}
		}
		if left > most {
			t.Fatalf("%d hits are left, more than %d", left, most)
		}
		if len(hot) > 0 && left+least <= most {
			t.Fatalf("%v are hot, one of them with %d hits: %d are left of %d", hot, least, left, most)
		}
	})
}
