package record

import (
	"cmp"
	"os"
	"path"
	"slices"

	"wpptrace/loader/attach"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// libraries are the shared libraries of a process that have been looked at.
type libraries struct {
	process   *target.Process
	selection Selection
	seen      []target.Library
	files     []*os.File // of those that are traced: read until the last snapshot is written
}

// unmatched lists the globs of the selection that have named no library so far.
func (l *libraries) unmatched() []string {
	return slices.DeleteFunc(slices.Clone(l.selection.Libraries), func(glob string) bool {
		return slices.ContainsFunc(l.seen,
			func(lib target.Library) bool { return names(glob, lib) })
	})
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
		if l.selection.Wants(lib) && !slices.ContainsFunc(l.seen, lib.Same) {
			l.seen = append(l.seen, lib)
			list = append(list, lib)
		}
	}
	return list, nil
}

// forget has a library looked at again.
func (l *libraries) forget(lib target.Library) { l.seen = slices.DeleteFunc(l.seen, lib.Same) }

// open plans a library. Its file is the last of l.files then.
func (l *libraries) open(lib target.Library) (*Program, error) {
	f, err := l.process.OpenLibrary(lib)
	if err != nil {
		return nil, err
	}
	selection := l.selection
	selection.image = path.Base(lib.Path) + ":"
	var refused error
	made, err := loadAround(func(im *image.Image) (list []attach.Obstacle) {
		list, refused = attach.LibraryObstacles(l.process, im, f)
		return list
	}, f, path.Base(lib.Path), selection)
	if err = cmp.Or(err, refused); err != nil {
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
	Programs  []*Program
	LeftOut   []LibraryLeftOut
	Unmatched []string // globs of the selection that name none
}

// PlanLibraries plans those libraries that a selection names and that a process has mapped by now,
// each by itself.
func PlanLibraries(p *target.Process, s Selection) (*Libraries, error) {
	l := libraries{process: p, selection: s}
	defer l.close()
	list, err := l.next()
	if err != nil {
		return nil, err
	}
	result := &Libraries{Unmatched: l.unmatched()}
	for _, lib := range list {
		made, err := l.open(lib)
		if err != nil {
			result.LeftOut = append(result.LeftOut, LibraryLeftOut{lib.Path, err})
			continue
		}
		result.Programs = append(result.Programs, made)
	}
	return result, nil
}
