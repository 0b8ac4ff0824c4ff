package bounds

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// bounds prints what a group's paths, numbered from 1, are bounded by, and the sums of both.
func boundsOf(t *testing.T, g *Group) (lines []string, definite, potential uint64) {
	t.Helper()
	all, err := g.Solve()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		lines = append(lines, fmt.Sprintf("%d!%d %d-%d", b.First+1, b.Second+1, b.Lower, b.Upper))
		definite += b.Lower
		potential += b.Upper
	}
	slices.Sort(lines)
	return lines, definite, potential
}

// TestTable5 has the loop of tables 4 and 5: entered 500 times, 250 times for 1, 1, 3 and 250 times
// for 2, 2, 3. Where the printed table contradicts the equations, which is at 2!3 with OL-1, the
// equations win: 2!2 ran 250 times at most, so that 2!3 did at least 250 times.
func TestTable5(t *testing.T) {
	loop := func(extension []int, counts ...Count) *Group {
		return &Group{First: []uint64{500, 500, 0}, Second: []uint64{250, 250, 500},
			Extension: extension, Counts: counts}
	}
	for _, test := range []struct {
		name                string
		group               *Group
		want                string
		definite, potential uint64
	}{
		{"OL-0", loop([]int{0, 0, 0}, Count{0, 0, 500}, Count{1, 0, 500}),
			"1!1 0-250, 1!2 0-250, 1!3 0-500, 2!1 0-250, 2!2 0-250, 2!3 0-500", 0, 2000},
		{"OL-1", loop([]int{0, 1, 1}, Count{0, 0, 250}, Count{0, 1, 250}, Count{1, 1, 500}),
			"1!1 250-250, 1!2 0-250, 1!3 0-250, 2!2 0-250, 2!3 250-500", 500, 1500},
		{"OL-2", loop([]int{0, 1, 2}, Count{0, 0, 250}, Count{0, 2, 250}, Count{1, 1, 250},
			Count{1, 2, 250}),
			"1!1 250-250, 1!3 250-250, 2!2 250-250, 2!3 250-250", 1000, 1000},
	} {
		lines, definite, potential := boundsOf(t, test.group)
		if got := strings.Join(lines, ", "); got != test.want || definite != test.definite ||
			potential != test.potential {
			t.Errorf("%s: %s, definite %d, potential %d", test.name, got, definite, potential)
		}
	}
}

// TestSection323 has the example of section 3.2.3: 3 paths to the call, 5 behind it, each of
// which ran 200 times; 100 calls, all of them 1!1.
func TestSection323(t *testing.T) {
	g := &Group{First: []uint64{200, 200, 200}, Second: []uint64{200, 200, 200, 200, 200},
		Alone: true, Calls: 100}
	lines, definite, potential := boundsOf(t, g)
	if len(lines) != 15 || definite != 0 || potential != 1500 || lines[7] != "2!3 0-100" {
		t.Errorf("path counts alone: %v, %d, %d", lines, definite, potential)
	}
	// degree 0 stops at P1, which all 5 run; degree 1 tells the first, which runs P1 B3, apart
	g.Alone, g.Extension = false, []int{0, 1, 1, 1, 1}
	g.Counts = []Count{{0, 0, 100}}
	if lines, _, _ := boundsOf(t, g); !slices.Equal(lines, []string{"1!1 100-100"}) {
		t.Errorf("I-OL-1: %v", lines)
	}
	g.Extension = make([]int, 5)
	if lines, _, potential := boundsOf(t, g); len(lines) != 5 || potential != 500 {
		t.Errorf("I-OL-0: %v", lines)
	}
}

// TestLargeCounts adds up counts beyond 64 bits, and refuses one that is at its end.
func TestLargeCounts(t *testing.T) {
	const most = math.MaxUint64 - 1
	g := &Group{First: []uint64{most, most}, Second: []uint64{most, most, most},
		Extension: []int{0, 0, 0}, Counts: []Count{{0, 0, most}, {1, 0, most}}}
	if _, err := g.Solve(); err != nil {
		t.Error(err)
	}
	g.Second = []uint64{most - 5, 2, 3}
	lines, _, _ := boundsOf(t, g)
	want := []string{"1!1 18446744073709551609-18446744073709551609", "1!2 2-2", "1!3 3-3",
		"2!1 18446744073709551609-18446744073709551609", "2!2 2-2", "2!3 3-3"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	g.Counts[1].N = math.MaxUint64
	if _, err := g.Solve(); !errors.Is(err, ErrSaturated) {
		t.Error(err)
	}
	if _, err := (&Group{Alone: true, Calls: math.MaxUint64}).Solve(); !errors.Is(err,
		ErrSaturated) {
		t.Error(err)
	}
}

// TestContradiction has counts that no run can have.
func TestContradiction(t *testing.T) {
	g := &Group{First: []uint64{9}, Second: []uint64{1, 2}, Extension: []int{0, 0},
		Counts: []Count{{0, 0, 4}}}
	if _, err := g.Solve(); err == nil || !strings.Contains(err.Error(),
		"counts contradict each other: 4 in all, each within its bounds 0 to 3") {
		t.Error(err)
	}
}

// TestTooManyPairs leaves out a group by reason.
func TestTooManyPairs(t *testing.T) {
	many := make([]uint64, 4000)
	for i := range many {
		many[i] = 1
	}
	g := &Group{First: many, Second: many, Extension: make([]int, 4000), Alone: true, Calls: 1}
	if _, err := g.Solve(); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	g.Alone = false
	for p := range many {
		g.Counts = append(g.Counts, Count{p, 0, 1})
	}
	if _, err := g.Solve(); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
}
