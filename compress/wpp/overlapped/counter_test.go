package overlapped

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
)

// A drawn program has one routine, whose block 0 is the head of a loop of blocks up to 9 with a
// predicate every other block: path n begins there and runs as many blocks as it has bits set, at
// these places.
type drawn struct{}

func (drawn) Symbol(routine int, path uint64) (wpp.Symbol, error) {
	s := wpp.Symbol{Start: ops.StartLoop, End: ops.EndLoop, Routine: routine, Path: path,
		Blocks: []int{0}}
	for b := 1; path>>(b-1) > 0; b++ {
		if path>>(b-1)&1 != 0 {
			s.Blocks = append(s.Blocks, b)
		}
	}
	return s, nil
}

func (drawn) Shape(routine int) (*Shape, error) {
	return &Shape{Routine: routine, Predicates: []int{0, 2, 4, 6, 8}, Loops: []Loop{{Head: 0,
		Blocks: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}}, nil
}

// TestCounter: however many overlapping paths there are, each is counted as often as it ran.
func TestCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var alphabet ops.Symbols
		k := rapid.IntRange(0, 6).Draw(t, "k")
		c := NewCounter(k, &alphabet, drawn{})
		threads := []*Thread{c.Thread(), c.Thread()}
		last := []uint64{1 << 40, 1 << 40}
		want := map[string]uint64{}
		list := rapid.SliceOfN(rapid.Uint64Range(0, 1<<10-1), 0, 400).Draw(t, "paths")
		for _, n := range list {
			on := int(n & 1)
			path, times := n>>1, 1+n%3
			threads[on].NewPath(0, path, times)
			q, _ := drawn{}.Symbol(0, path)
			left, blocks := k+1, []int{}
			for _, b := range q.Blocks {
				if left > 0 {
					blocks = append(blocks, b)
				}
				if b%2 == 0 {
					left--
				}
			}
			if last[on] < 1<<40 {
				want[fmt.Sprint(last[on], blocks)]++
			}
			if times > 1 {
				want[fmt.Sprint(path, blocks)] += times - 1
			}
			last[on] = path
		}
		p, err := c.Profile()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]uint64{}
		for _, x := range p.Counts {
			got[fmt.Sprint(alphabet.Meaning(x.Path).Path, p.Extensions[x.Extension].Blocks)] += x.N
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTooManyPairs: where memory for counts is used up, what is counted stays right, and the paths
// are named that go on in ways that are not.
func TestTooManyPairs(t *testing.T) {
	var alphabet ops.Symbols
	c := NewCounter(6, &alphabet, drawn{})
	c.most = 2
	thread := c.Thread()
	for _, path := range []uint64{1, 2, 3, 4, 1, 2} { // 1!2, 2!3, and then 3!4, 4!1 are too many
		thread.NewPath(0, path, 1)
	}
	p, err := c.Profile()
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]uint64{}
	for _, x := range p.Counts {
		got[alphabet.Meaning(x.Path).Path] += x.N
	}
	if diff := cmp.Diff(map[uint64]uint64{1: 2, 2: 1}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint32{alphabet.Symbol(0, 3), alphabet.Symbol(0, 4)},
		p.Uncounted); diff != "" {
		t.Error(diff)
	}
}
