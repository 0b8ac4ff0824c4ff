package format

import (
	"slices"
	"testing"

	"wpptrace/compress/wpp/wpptest"
)

func TestDecodeTree(t *testing.T) {
	for _, c := range []struct {
		tree []uint32
		want []string
	}{
		{[]uint32{0}, []string{"S "}},
		{[]uint32{2, 2 * 'a', 2 * 'a'}, []string{"S aa"}},
		{[]uint32{3, 1, 2, 2 * 'a', 2 * 'b', 3, 3}, []string{"S AAA", "A ab"}},
		{[]uint32{3, 1, 2, 1, 2, 2 * 'a', 2 * 'b', 3, 5, 2 * 'c'},
			[]string{"S AAc", "A BB", "B ab"}},
	} {
		got, err := decodeTree(c.tree, 10)
		if err != nil || !slices.EqualFunc(got, wpptest.Bodies(c.want), slices.Equal) {
			t.Errorf("%v: %v, %v, want %q", c.tree, got, err, c.want)
		}
	}
}

func TestTreeOfTooManyRules(t *testing.T) {
	if _, err := decodeTree([]uint32{3, 1, 2, 2 * 'a', 2 * 'b', 3, 3}, 1); err == nil ||
		err.Error() != "has more rules than the 1 that may be left" {
		t.Error(err)
	}
}
