package covered

import (
	"reflect"
	"strings"
	"testing"
)

// image is one of a file and a routine; states are those of its blocks, at 16 bytes each, one a
// line.
func image(id byte, states ...State) Image {
	m := Image{Name: "prog", BuildID: []byte{id}, Files: []string{"a.c"},
		Routines: []Routine{{Name: "f", Addr: 0x100, Place: Line{0, 1}}}}
	for i, s := range states {
		m.Blocks = append(m.Blocks, Block{Addr: uint64(0x100 + 16*i), Ran: s,
			Lines: []Line{{0, i + 1}}})
	}
	return m
}

func TestMerge(t *testing.T) {
	const n, u, r = NotRun, Unknown, Run
	c := &Coverage{Images: []Image{image(1, n, n, n, u, u, u, r, r, r)}}
	other := &Coverage{Images: []Image{image(1, n, u, r, n, u, r, n, u, r), image(2, n)}}
	if err := c.Merge(other); err != nil {
		t.Fatal(err)
	}
	want := &Coverage{Images: []Image{image(1, n, u, r, u, u, r, r, r, r), image(2, n)}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("merged: %+v", c)
	}
}

// An outcome of a jump has been if it has in one of them.
func TestMergeOfJumps(t *testing.T) {
	jumps := func(outcomes [2]State) *Coverage {
		m := image(1, Run)
		m.Blocks[0].Jump = &Jump{Outcomes: outcomes}
		return &Coverage{Images: []Image{m}}
	}
	c := jumps([2]State{Run, NotRun})
	if err := c.Merge(jumps([2]State{NotRun, Unknown})); err != nil {
		t.Fatal(err)
	}
	if got := c.Images[0].Blocks[0].Jump.Outcomes; got != [2]State{Run, Unknown} {
		t.Errorf("its outcomes are %v", got)
	}
}

// What was merged is as before, whatever is merged after it.
func TestMergeLeavesTheOther(t *testing.T) {
	c, other := &Coverage{}, whole()
	for _, x := range []*Coverage{other, {Images: []Image{image(1, Run, Run, Run)}}} {
		if err := c.Merge(x); err != nil {
			t.Fatal(err)
		}
	}
	if c.Images[0].Blocks[1].Ran != Run || !reflect.DeepEqual(other, whole()) {
		t.Errorf("merged: %+v, of %+v", c, other)
	}
}

// Files and routines have other numbers in another coverage.
func TestMergeRenumbers(t *testing.T) {
	a := &Coverage{Images: []Image{image(1, Run)}}
	b := &Coverage{Images: []Image{{Name: "prog", BuildID: []byte{1}, Files: []string{"b.c", "a.c"},
		Routines: []Routine{{Name: "g", Addr: 0x200, Place: Line{0, 7}},
			{Name: "f", Addr: 0x100, Place: Line{1, 1}}},
		Blocks: []Block{{Addr: 0x200, Routine: 0, Ran: Run, Lines: []Line{{0, 7}, {1, 9}},
			Jump: &Jump{Place: Line{1, 9}}}}}}}
	if err := a.Merge(b); err != nil {
		t.Fatal(err)
	}
	m := a.Images[0]
	want := Block{Addr: 0x200, Routine: 1, Ran: Run, Lines: []Line{{1, 7}, {0, 9}},
		Jump: &Jump{Place: Line{0, 9}}}
	if got := m.Blocks[1]; !reflect.DeepEqual(got, want) {
		t.Errorf("the block is %+v, not %+v", got, want)
	}
	if r := m.Routines[1]; r.Name != "g" || r.Place != (Line{1, 7}) {
		t.Errorf("the routine is %+v", r)
	}
}

func TestMergeRefusesUnknownBuilds(t *testing.T) {
	a := &Coverage{Images: []Image{image(1, Run)}}
	b := &Coverage{Images: []Image{{Name: "prog"}}}
	if err := a.Merge(b); err == nil || !strings.Contains(err.Error(), "no build id") {
		t.Errorf("an image without a build id: %v", err)
	}
}

// What is not known is absent, and never taken for what has not run.
func TestSources(t *testing.T) {
	m := image(1, NotRun, Unknown, Run)
	for _, l := range []int{5, 6} { // code of several blocks
		m.Blocks[0].Lines = append(m.Blocks[0].Lines, Line{0, l})
	}
	m.Blocks[1].Lines = append(m.Blocks[1].Lines, Line{0, 5})
	m.Blocks[2].Lines = append(m.Blocks[2].Lines, Line{0, 6})
	m.Blocks[2].Jump = &Jump{Place: Line{0, 6}, Outcomes: [2]State{Run, Unknown}}
	got := (&Coverage{Images: []Image{m}}).Sources()
	want := []Source{{Name: "a.c",
		Lines:    []SourceLine{{1, false}, {3, true}, {6, true}},
		Routines: []SourceRoutine{{Line: 1, Name: "f", Ran: true}},
		Branches: []SourceBranches{{6, []BranchStates{{true, [2]State{Run, Unknown}}}}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sources: %+v", got)
	}
}
