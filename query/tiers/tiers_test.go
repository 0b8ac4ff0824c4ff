package tiers

import (
	"fmt"
	"slices"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/query/querytest"
	"wpptrace/query/slice"
)

// Two paths ran once each: nothing of one is like what was before.
func ExampleOf() {
	t, err := Of(querytest.Values(), 0, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Instructions, t.Timestamps.Before, t.Timestamps.First, t.Values.Before,
		t.Labels == t.Local)
	// Output: 11 44 8 20 true
}

// TestFirstInstructions: no more is made than is asked for, and the rest of a path.
func TestFirstInstructions(t *testing.T) {
	for most, want := range map[uint64]uint64{0: 0, 1: 6, 6: 6, 7: 11, 11: 11} {
		got, err := Of(querytest.Values(), 0, most)
		if err != nil || got.Instructions != want {
			t.Errorf("the first %d: %+v, %v, want %d", most, got, err, want)
		}
	}
}

// TestGroups: statements are together whose inputs are those of one of them, or some of these.
func TestGroups(t *testing.T) {
	of := func(inputs ...int) (s set) {
		for _, n := range inputs {
			s = s.add(n)
		}
		return s
	}
	for name, c := range map[string]struct {
		sets []set
		want [][]int
	}{
		"none":      {nil, nil},
		"the same":  {[]set{of(1), of(1)}, [][]int{{0, 1}}},
		"different": {[]set{of(1), of(2)}, [][]int{{0}, {1}}},
		"within":    {[]set{of(1), of(1, 70), of(70)}, [][]int{{1, 0, 2}}},
		"constant":  {[]set{of(), of(3)}, [][]int{{1, 0}}},
		"crossing":  {[]set{of(1, 2), of(2, 3)}, [][]int{{0}, {1}}},
	} {
		var got [][]int
		for _, g := range groupsOf(c.sets) {
			got = append(got, g.statements)
		}
		if !slices.EqualFunc(got, c.want, slices.Equal[[]int]) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestSharedPatterns: a group keeps the different values that it had, once, and which it was.
func TestSharedPatterns(t *testing.T) {
	n := &node{sets: []set{set{}.add(1), set{}.add(1), set{}.add(2)}}
	v := &valuer{nodes: map[uint32]*node{7: n}}
	for i := range uint64(6) {
		v.begin(7, i)
		v.values = append(v.values, i%2, 10*(i%2), 5)
	}
	v.flush()
	if g := n.groups()[0]; !slices.Equal(g.pattern, []uint64{0, 1, 0, 1, 0, 1}) ||
		!slices.Equal(g.different[0], []uint64{0, 1}) ||
		!slices.Equal(g.different[1], []uint64{0, 10}) {
		t.Errorf("%+v", g)
	}
	m := Tiers{Instructions: 18}
	if err := v.measure(&m); err != nil {
		t.Fatal(err)
	}
	// six timestamps; a pattern of six bytes with twice two values, and one that is always the same
	if m.Timestamps.First != 4*6 || m.Values.Before != 4*18 || m.Values.First != 6+4*(4+1) ||
		m.Timestamps.Numbers != 6 || m.Values.Numbers != 6+4+1 {
		t.Errorf("%+v", m)
	}
}

// TestGroupsOfCutExecution: the groups of a path are those of all of its statements, though its
// first execution was cut short.
func TestGroupsOfCutExecution(t *testing.T) {
	add := func(v *valuer, number uint8, value uint64) {
		v.add(&wet.Executed{Code: &machine.Insn{},
			Written: []wet.Register{{Number: number, Value: value}}})
	}
	v := &valuer{nodes: map[uint32]*node{}}
	for i, statements := range []int{1, 3, 2, 3} {
		v.begin(7, uint64(i))
		for k := range statements {
			add(v, uint8(k), uint64(10*k+i%2))
		}
	}
	v.flush()
	m := Tiers{Instructions: 9}
	v.measure(&m)
	n := v.nodes[7]
	kept := 0
	for _, g := range n.groups() {
		kept += len(g.statements)
	}
	if len(n.sets) != 3 || kept != 3 || v.count != 9 || m.Values.Before != 4*9 {
		t.Errorf("%d sets, %d statements in groups, %d values, %+v", len(n.sets), kept, v.count, m)
	}
}

// TestGroupsThatNeverRepeat: what has no pattern is kept as it is.
func TestGroupsThatNeverRepeat(t *testing.T) {
	g := groupsOf([]set{set{}.add(1)})[0]
	for i := range uint64(5) {
		g.add([]uint64{i * i})
	}
	bytes, lists := g.stored()
	if bytes != 4*5 || len(lists) != 1 || !slices.Equal(lists[0], []uint64{0, 1, 4, 9, 16}) {
		t.Errorf("%d bytes, %v", bytes, lists)
	}
}

// TestSharedLabels: edges between the same two paths share what is the same.
func TestSharedLabels(t *testing.T) {
	l := &labels{from: []uint64{3, 5}, back: []uint64{1, 1}}
	a := edge{end{1, 0}, end{2, 4}, slice.Data}
	for name, c := range map[string]struct {
		edge   edge
		labels labels
		same   bool
	}{
		"other statements": {edge{end{1, 3}, end{2, 0}, slice.Control}, *l, true},
		"other paths":      {edge{end{1, 0}, end{3, 4}, slice.Data}, *l, false},
		"other labels":     {a, labels{[]uint64{3, 5}, []uint64{1, 2}}, false},
	} {
		if same := c.labels.key(c.edge) == l.key(a); same != c.same {
			t.Errorf("%s: shared %v", name, same)
		}
	}
}
