package covered

import (
	"cmp"
	"maps"
	"slices"
)

// A Source is what has run of a source file.
type Source struct {
	Name     string
	Lines    []SourceLine     // that are known, by number
	Routines []SourceRoutine  // by line and name
	Branches []SourceBranches // by line
}

// A SourceLine is a line that code is of.
type SourceLine struct {
	Line int
	Ran  bool
}

// A SourceRoutine is a routine that begins in the file.
type SourceRoutine struct {
	Line         int
	Name, Symbol string
	Ran          bool
}

// SourceBranches are the conditional jumps of a line, of which more is known than that they are
// there.
type SourceBranches struct {
	Line  int
	Jumps []BranchStates
}

// BranchStates say of a conditional jump whether it has run, and with which outcomes. What is
// Unknown may have been.
type BranchStates struct {
	Ran      bool
	Outcomes [2]State
}

// Sources are the source files of all images, by name. A line has run if any of its code has; it
// has not if all of its code is known not to have; else it is left out, as are routines of which
// that much is not known.
func (c *Coverage) Sources() []Source {
	s := sources{files: map[string]*sourceFile{}}
	for i := range c.Images {
		s.add(&c.Images[i])
	}
	var list []Source
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if f := s.files[name].source(name); len(f.Lines)+len(f.Routines) > 0 {
			list = append(list, f)
		}
	}
	return list
}

type sources struct{ files map[string]*sourceFile }

type sourceFile struct {
	lines    map[int]State
	routines map[SourceRoutine]State // with Ran unset
	branches map[int][]BranchStates
}

func (s *sources) file(name string) *sourceFile {
	f := s.files[name]
	if f == nil {
		f = &sourceFile{map[int]State{}, map[SourceRoutine]State{}, map[int][]BranchStates{}}
		s.files[name] = f
	}
	return f
}

func (s *sources) add(m *Image) {
	ran := m.RoutineStates()
	for i, r := range m.Routines {
		if r.Place.Line > 0 {
			f := s.file(m.Files[r.Place.File])
			key := SourceRoutine{Line: r.Place.Line, Name: r.Name, Symbol: r.Symbol}
			f.routines[key] = f.routines[key].or(ran[i])
		}
	}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		for _, l := range b.Lines {
			f := s.file(m.Files[l.File])
			f.lines[l.Line] = f.lines[l.Line].or(b.Ran)
		}
		if j := b.Jump; j != nil && j.Place.Line > 0 && b.Ran != Unknown {
			f := s.file(m.Files[j.Place.File])
			f.branches[j.Place.Line] = append(f.branches[j.Place.Line],
				BranchStates{b.Ran == Run, j.Outcomes})
		}
	}
}

// RoutineStates are those of the routines: one has run if any block of it has, and has not if all
// are known not to have.
func (m *Image) RoutineStates() []State {
	list, known := make([]State, len(m.Routines)), make([]bool, len(m.Routines))
	for i := range m.Blocks {
		if b := &m.Blocks[i]; b.Routine >= 0 {
			list[b.Routine] = list[b.Routine].or(b.Ran)
			known[b.Routine] = true
		}
	}
	for i, any := range known {
		if !any {
			list[i] = Unknown
		}
	}
	return list
}

func (f *sourceFile) source(name string) Source {
	s := Source{Name: name}
	for _, line := range slices.Sorted(maps.Keys(f.lines)) {
		if state := f.lines[line]; state != Unknown {
			s.Lines = append(s.Lines, SourceLine{line, state == Run})
		}
	}
	for r, state := range f.routines {
		if r.Ran = state == Run; state != Unknown {
			s.Routines = append(s.Routines, r)
		}
	}
	slices.SortFunc(s.Routines, func(a, b SourceRoutine) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Symbol, b.Symbol))
	})
	for _, line := range slices.Sorted(maps.Keys(f.branches)) {
		if f.lines[line] != Unknown {
			s.Branches = append(s.Branches, SourceBranches{line, f.branches[line]})
		}
	}
	return s
}
