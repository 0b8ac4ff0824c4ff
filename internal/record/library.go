package record

import (
	"os"
	"path"
	"slices"

	"wpptrace/internal/traced"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// libraries are the shared libraries of a process that have been looked at.
type libraries struct {
	process   *target.Process
	selection traced.Selection
	needed    []string // by the executable
	seen      []target.Library
	matched   map[string]bool // globs of the selection that have named a library
	sonames   []soname
	files     []*os.File // of those that are traced: read until the last snapshot is written
}

// A soname is what a library calls itself, "" if it does not, or is out of reach.
type soname struct {
	library target.Library
	name    string
}

func newLibraries(p *target.Process, s traced.Selection, needed []string) *libraries {
	return &libraries{process: p, selection: s, needed: needed, matched: map[string]bool{}}
}

// unmatched lists the globs of the selection that have named no library so far.
func (l *libraries) unmatched() []string {
	return slices.DeleteFunc(slices.Clone(l.selection.Libraries),
		func(glob string) bool { return l.matched[glob] })
}

// next lists the libraries that the selection names and that have not been looked at.
func (l *libraries) next() ([]target.Library, error) {
	if len(l.selection.Libraries) == 0 {
		return nil, nil
	}
	all, err := l.process.Libraries()
	if err != nil {
		return nil, err
	}
	var list []target.Library
	for _, lib := range all {
		if !slices.ContainsFunc(l.seen, lib.Same) && l.wants(lib) {
			l.seen = append(l.seen, lib)
			list = append(list, lib)
		}
	}
	return list, nil
}

// wants reports whether the selection names a library.
func (l *libraries) wants(lib target.Library) bool {
	called := l.called(lib)
	for _, glob := range l.selection.Libraries {
		if traced.MatchesLibrary(glob, called...) {
			l.matched[glob] = true
		}
	}
	return l.selection.Wants(called...)
}

// called lists what a library is called: its path, its soname, which is that of a symbolic link as
// a rule, and the names under which the executable needs it. The soname is read once, in some
// 50 us.
func (l *libraries) called(lib target.Library) []string {
	i := slices.IndexFunc(l.sonames, func(s soname) bool { return s.library.Same(lib) })
	if i < 0 {
		i = len(l.sonames)
		l.sonames = append(l.sonames, soname{lib, l.sonameOf(lib)})
	}
	list := []string{lib.Path}
	if name := l.sonames[i].name; name != "" {
		list = append(list, name)
	}
	for _, name := range l.needed { // a path, if it was linked by that, and has no soname
		if path.Base(name) == path.Base(lib.Path) {
			list = append(list, name)
		}
	}
	return list
}

func (l *libraries) sonameOf(lib target.Library) string {
	f, err := l.process.OpenLibrary(lib)
	if err != nil {
		return ""
	}
	defer f.Close()
	return image.Soname(f)
}

// forget has a library looked at again.
func (l *libraries) forget(lib target.Library) { l.seen = slices.DeleteFunc(l.seen, lib.Same) }

// open plans a library. Its file is the last of l.files then.
func (l *libraries) open(lib target.Library) (*traced.Program, error) {
	f, err := l.process.OpenLibrary(lib)
	if err != nil {
		return nil, err
	}
	made, err := traced.LoadLibrary(l.process, f, path.Base(lib.Path), l.selection)
	if err != nil {
		f.Close()
		return nil, err
	}
	l.files = append(l.files, f)
	return made, nil
}

// last is the file of the library that was opened last.
func (l *libraries) last() *os.File { return l.files[len(l.files)-1] }

// isMapped reports whether the process has a library mapped, as far as is known.
func (l *libraries) isMapped(lib target.Library) bool {
	all, err := l.process.Libraries()
	return err != nil || slices.ContainsFunc(all, lib.Same)
}

func (l *libraries) close() {
	for _, f := range l.files {
		f.Close()
	}
}

// Libraries are the plans of libraries that a process has mapped.
type Libraries struct {
	Programs  []*traced.Program
	LeftOut   []LibraryLeftOut
	Unmatched []string // globs of the selection that name none
	Called    []string // what those are called that the selection names
}

// A Selector finds the libraries of a process that a selection names, each once. It belongs to one
// goroutine.
type Selector struct{ libraries *libraries }

// NewSelector returns one; needed is as for PlanLibraries.
func NewSelector(p *target.Process, s traced.Selection, needed []string) *Selector {
	return &Selector{newLibraries(p, s, needed)}
}

// Next lists those that the process has mapped by now and that were not listed before. Cost: some
// 10 us a mapping, where the selection names any.
func (s *Selector) Next() ([]target.Library, error) { return s.libraries.next() }

// Unmatched lists the globs of the selection that have named no library so far.
func (s *Selector) Unmatched() []string { return s.libraries.unmatched() }

// PlanLibraries plans those libraries that a selection names and that a process has mapped by now,
// each by itself. needed are the names under which its executable needs some.
func PlanLibraries(p *target.Process, s traced.Selection, needed []string) (*Libraries, error) {
	l := newLibraries(p, s, needed)
	defer l.close()
	list, err := l.next()
	if err != nil {
		return nil, err
	}
	result := &Libraries{Unmatched: l.unmatched()}
	for _, lib := range list {
		result.Called = append(result.Called, l.called(lib)...)
		made, err := l.open(lib)
		if err != nil {
			result.LeftOut = append(result.LeftOut, LibraryLeftOut{lib.Path, err})
			continue
		}
		result.Programs = append(result.Programs, made)
	}
	return result, nil
}
