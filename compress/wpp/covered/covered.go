package covered

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// A State says whether code has run.
type State uint8

// The states, in the order in which one prevails where the same code was observed twice.
const (
	NotRun State = iota
	Unknown
	Run
)

// or is the state of code that is in either of two states: it has run if it has in one.
func (s State) or(t State) State { return max(s, t) }

// A Coverage is what has run of the code of some images.
type Coverage struct{ Images []Image }

// An Image is an executable or a shared library.
type Image struct {
	Name     string // base name of its file
	BuildID  []byte // nil: it has none
	Files    []string
	Routines []Routine // by Addr
	Blocks   []Block   // by Addr
}

// A Routine is one of an image.
type Routine struct {
	Name   string // demangled
	Symbol string // "": there is none
	Addr   uint64 // link-time, of its entry
	Place  Line   // of its entry; of line 0: it is not known
}

// A Line is a source line. Of line 0, it is not known.
type Line struct {
	File int // index in Image.Files
	Line int
}

// A Block is a basic block, or code that is in no known block, which is Unknown.
type Block struct {
	Addr    uint64 // link-time, of its first instruction
	Routine int    // index in Image.Routines; -1: none
	Ran     State
	Lines   []Line // of its instructions, each once
	Jump    *Jump  // nil: no conditional jump ends it
}

// A Jump is a conditional jump.
type Jump struct {
	Place Line
	// Outcomes are whether it has gone on behind it, and whether it has jumped.
	Outcomes [2]State
}

// Merge adds what another coverage has run, which stays as it is. Images are the same if their
// build ids are; one without is refused, for nothing says which build it is of. Cost: linear in
// both.
func (c *Coverage) Merge(other *Coverage) error {
	for _, x := range append(slices.Clone(c.Images), other.Images...) {
		if len(x.BuildID) == 0 {
			return fmt.Errorf("%s has no build id, so that nothing says whether two runs are of "+
				"the same program: link it with -Wl,--build-id", x.Name)
		}
	}
	for i := range other.Images {
		from := &other.Images[i]
		to := c.Image(from.BuildID)
		if to == nil {
			added := *from
			added.Blocks = slices.Clone(from.Blocks) // their states change when more is merged
			c.Images = append(c.Images, added)
			continue
		}
		to.merge(from)
	}
	return nil
}

// Image is the image with a build id, or nil.
func (c *Coverage) Image(buildID []byte) *Image {
	for i := range c.Images {
		if bytes.Equal(c.Images[i].BuildID, buildID) {
			return &c.Images[i]
		}
	}
	return nil
}

// merge adds what another coverage of the same image has run. Blocks that only one of them knows
// are as that one has them: the other has not observed them.
func (m *Image) merge(from *Image) {
	fileAt := m.fileNumbers(from.Files)
	routineAt := m.routineNumbers(from.Routines, fileAt)
	at := map[uint64]int{}
	for i := range m.Blocks {
		at[m.Blocks[i].Addr] = i
	}
	for _, b := range from.Blocks {
		line := func(l Line) Line { return Line{fileAt[l.File], l.Line} }
		i, known := at[b.Addr]
		if !known {
			b.Lines = slices.Clone(b.Lines)
			for k := range b.Lines {
				b.Lines[k] = line(b.Lines[k])
			}
			if b.Jump != nil {
				j := *b.Jump
				if j.Place.Line > 0 {
					j.Place = line(j.Place)
				}
				b.Jump = &j
			}
			if b.Routine >= 0 {
				b.Routine = routineAt[b.Routine]
			}
			m.Blocks = append(m.Blocks, b)
			continue
		}
		to := &m.Blocks[i]
		to.Ran = to.Ran.or(b.Ran)
		if to.Jump != nil && b.Jump != nil {
			j := *to.Jump
			for k := range j.Outcomes {
				j.Outcomes[k] = j.Outcomes[k].or(b.Jump.Outcomes[k])
			}
			to.Jump = &j
		}
	}
	slices.SortFunc(m.Blocks, func(a, b Block) int { return cmp.Compare(a.Addr, b.Addr) })
}

// fileNumbers adds files, and returns the number of each.
func (m *Image) fileNumbers(files []string) (list []int) {
	for _, name := range files {
		i := slices.Index(m.Files, name)
		if i < 0 {
			i = len(m.Files)
			m.Files = append(slices.Clip(m.Files), name)
		}
		list = append(list, i)
	}
	return list
}

// routineNumbers adds routines, and returns the number of each.
func (m *Image) routineNumbers(routines []Routine, fileAt []int) (list []int) {
	known := map[uint64]int{}
	for i := range m.Routines {
		known[m.Routines[i].Addr] = i
	}
	for _, r := range routines {
		i, ok := known[r.Addr]
		if !ok {
			if r.Place.Line > 0 {
				r.Place.File = fileAt[r.Place.File]
			}
			i = len(m.Routines)
			m.Routines = append(slices.Clip(m.Routines), r)
		}
		list = append(list, i)
	}
	return list
}
