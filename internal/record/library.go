package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"

	"wpptrace/loader/attach"
	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/query/report"
)

// libraries are those of a process that have been looked at.
type libraries struct {
	seen  []target.Library
	files []*os.File // of those that are observed: read until the last snapshot is written
}

// wants reports whether --lib names a library.
func (s selection) wants(l target.Library) bool {
	return slices.ContainsFunc(s.libs, func(glob string) bool { return names(glob, l) })
}

func names(glob string, l target.Library) bool {
	base, _ := path.Match(glob, path.Base(l.Path))
	whole, _ := path.Match(glob, l.Path)
	return base || whole
}

// unmatched lists the globs that have named no library so far.
func (l *libraries) unmatched(globs []string) []string {
	return slices.DeleteFunc(slices.Clone(globs), func(glob string) bool {
		return slices.ContainsFunc(l.seen, func(lib target.Library) bool { return names(glob, lib) })
	})
}

// tellUnmatched says of a glob that it has named no library so far.
func tellUnmatched(glob string, pid int) string {
	return fmt.Sprintf("--lib %q names no library that process %d has loaded so far", glob, pid)
}

// tellUnselected says which -F and -N have matched no routine, neither of the executable nor of the
// libraries that have been observed.
func (s selection) tellUnselected(w io.Writer, p *plan.Plan) {
	tell := func(flag string, list []string) {
		for _, text := range list {
			if !s.matchesAny(regexp.MustCompile(text), p) {
				fmt.Fprintf(w, "wpptrace: %s %q has matched no routine: wpptrace plan -v lists those of a program, wpptrace plan -v LIBRARY those of a library\n", flag, text)
			}
		}
	}
	tell("-F", s.only)
	tell("-N", s.not)
}

func (s selection) matchesAny(re *regexp.Regexp, p *plan.Plan) bool {
	for i, part := range p.Parts {
		if s.image = ""; i > 0 {
			s.image = path.Base(part.Program.Image.Name) + ":"
		}
		if slices.ContainsFunc(part.Program.Routines, func(r *cfg.Routine) bool { return s.matches([]*regexp.Regexp{re}, r) }) {
			return true
		}
	}
	return false
}

// checkGlobs finds a --lib that can match nothing.
func (s selection) checkGlobs() error {
	for _, glob := range s.libs {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			return usagef("read --lib %q: not a glob: * stands for anything but /, ? for one character, [a-z] for one of some", glob)
		}
	}
	return nil
}

// next lists the libraries of a process that --lib names and that have not been looked at.
func (l *libraries) next(p *target.Process, s selection) ([]target.Library, error) {
	if len(s.libs) == 0 {
		return nil, nil
	}
	all, err := p.Libraries()
	if err != nil {
		return nil, err
	}
	var list []target.Library
	for _, lib := range all {
		if s.wants(lib) && !slices.ContainsFunc(l.seen, lib.Same) {
			l.seen = append(l.seen, lib)
			list = append(list, lib)
		}
	}
	return list, nil
}

// forget has a library looked at again.
func (l *libraries) forget(lib target.Library) { l.seen = slices.DeleteFunc(l.seen, lib.Same) }

// open plans a library of a process.
func (l *libraries) open(p *target.Process, lib target.Library, s selection) (*program, error) {
	f, err := p.OpenLibrary(lib)
	if err != nil {
		return nil, err
	}
	s.image = path.Base(lib.Path) + ":"
	made, err := loadProgram(f, path.Base(lib.Path), s)
	if err == nil {
		err = attach.CheckLibrary(p, made.image, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	l.files = append(l.files, f)
	return made, nil
}

// planLibraries plans those libraries that --lib names and that a process has mapped by now, each
// by itself.
func planLibraries(pid int, s selection, stderr io.Writer) ([]*program, error) {
	if len(s.libs) == 0 {
		return nil, nil
	}
	p, err := target.Open(pid)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var l libraries
	defer l.close()
	list, err := l.next(p, s)
	if err != nil {
		return nil, err
	}
	for _, glob := range l.unmatched(s.libs) {
		fmt.Fprintf(stderr, "wpptrace: %s\n", tellUnmatched(glob, pid))
	}
	var programs []*program
	for _, lib := range list {
		made, err := l.open(p, lib, s)
		if err != nil {
			tellUnobserved(stderr, lib, err)
			continue
		}
		programs = append(programs, made)
	}
	return programs, nil
}

// tellUnobserved says why a library that --lib names is not observed.
func tellUnobserved(w io.Writer, lib target.Library, why error) {
	fmt.Fprintf(w, "wpptrace: %s is not observed: %s\n", report.Fit(lib.Path, len(lib.Path)), oneLine(why))
}

func (l *libraries) close() {
	for _, f := range l.files {
		f.Close()
	}
}

// addLibraries has those libraries observed that --lib names and that the process has mapped by
// now. One that cannot be is told of, and is code that is not observed.
func (j *job) addLibraries() error {
	list, err := j.libraries.next(j.process, j.selection)
	if err != nil {
		return err
	}
	for _, lib := range list {
		made, err := j.planLibrary(lib)
		switch {
		case err != nil && (!j.session.Attached() || j.session.Mapped() || !j.hasMapped(lib)): // it comes and goes
			j.libraries.forget(lib)
			continue
		case err != nil:
			tellUnobserved(j.errs, lib, err)
			continue
		}
		if err := j.addLibrary(made.plan); err != nil {
			return err
		}
		j.say("%s: %s", report.Fit(path.Base(lib.Path), len(lib.Path)), summary(made.plan))
		j.tellRefusal(made)
	}
	return nil
}

func (j *job) hasMapped(lib target.Library) bool {
	all, err := j.process.Libraries()
	return err != nil || slices.ContainsFunc(all, lib.Same)
}

// planLibrary makes a library the plan's last part.
func (j *job) planLibrary(lib target.Library) (*program, error) {
	if err := j.session.MayAdd(); err != nil {
		return nil, err
	}
	made, err := j.libraries.open(j.process, lib, j.selection)
	if err != nil {
		return nil, err
	}
	return made, j.program.plan.Append(made.plan)
}

// addLibrary has the last part of the plan decoded and probed.
func (j *job) addLibrary(p *plan.Plan) error {
	j.tellPassedOver(p.Program.Image)
	if err := j.decoder.Grow(); err != nil {
		return err
	}
	j.raw.define(p)
	return j.session.Add(j.libraries.files[len(j.libraries.files)-1])
}

// takeLibraries deals with code that the process has mapped. It is held meanwhile; if somebody has
// let it go on, what its threads have done is not known.
func (j *job) takeLibraries(ctx context.Context) error {
	if !j.session.Mapped() {
		return nil
	}
	escaped, err := j.refreshLibraries()
	if err != nil || !escaped || !j.session.Attached() {
		return err
	}
	if err := j.detach(ctx); err != nil {
		return err
	}
	if err := j.leaveThreads(); err != nil {
		return err
	}
	if err := j.attachAgain(); err != nil {
		return err
	}
	return j.session.Enable(false)
}

func (j *job) refreshLibraries() (escaped bool, err error) {
	err = j.session.Refresh()
	if err == nil {
		err = j.addLibraries()
	}
	if err != nil {
		return false, gone(j.process, err)
	}
	return j.settle()
}

// attachAgain puts the probes in again, in those libraries too that have been mapped since they
// were taken out.
func (j *job) attachAgain() error {
	if err := j.session.Attach(j.exe); err != nil {
		return err
	}
	for j.session.Mapped() {
		if _, err := j.refreshLibraries(); err != nil {
			return err
		}
	}
	return nil
}

// settle tells of a process that somebody has let go on before its libraries were dealt with.
func (j *job) settle() (escaped bool, err error) {
	if escaped, err = j.session.Settle(); escaped {
		fmt.Fprintf(j.errs, "wpptrace: process %d (%s), which was held because it had loaded code, was let go on by a SIGCONT too early: what it did meanwhile is not recorded\n",
			j.process.PID, j.process.Name)
	}
	return escaped, err
}
