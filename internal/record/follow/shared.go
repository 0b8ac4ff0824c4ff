package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"wpptrace/internal/record/overhead"

	"golang.org/x/sys/unix"

	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
)

// shared is what jobs have in common that record several programs at the same time. It is used by
// one goroutine at a time. A job that is alone has none: nil makes what it needs for it alone.
type shared struct {
	guard    *guard.Guard
	meter    *overhead.Meter // lends its calibrator; nil: no job has needed one yet
	programs []shelved
}

// mostShelved is how many programs are kept that no job may need: to read and plan one takes up to
// some seconds.
const mostShelved = 8

// A shelved is a program that was read before, or why it cannot be recorded.
type shelved struct {
	file    unix.Stat_t
	program *program
	exe     *os.File // what the program is read from still
	err     error
}

// errUnrecordable is the error of a program that cannot be recorded.
type errUnrecordable struct{ error }

func (e errUnrecordable) Unwrap() error { return e.error }

// load is loadProgram, but that what was read before is not read again, and that a program is
// recordable.
func (s *shared) load(exe *os.File, name string, sel selection) (*program, error) {
	if s == nil {
		return loadProgram(exe, name, sel)
	}
	var now unix.Stat_t
	if err := unix.Fstat(int(exe.Fd()), &now); err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	if i := slices.IndexFunc(s.programs, func(p shelved) bool { return sameFile(&p.file, &now) }); i >= 0 {
		return s.programs[i].program, s.programs[i].err
	}
	made, err := newShelved(exe, name, sel)
	if err != nil {
		return nil, err
	}
	made.file = now
	s.programs = append(s.programs, made)
	return made.program, made.err
}

func newShelved(exe *os.File, name string, sel selection) (made shelved, err error) {
	own, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", exe.Fd())) // the job's is closed with the job
	if err != nil {
		return made, fmt.Errorf("open %s: %w", name, err)
	}
	made.exe = own
	made.program, made.err = loadProgram(own, name, sel)
	if made.err == nil {
		made.err = made.program.recordable(name)
	}
	if usage := (usageError{}); errors.As(made.err, &usage) {
		return made, errors.Join(made.err, own.Close())
	}
	if made.err != nil {
		made.program, made.err = nil, errUnrecordable{made.err}
	}
	return made, nil
}

// sameFile reports whether nothing was written to a file in between, as far as that can be seen.
func sameFile(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// tidy forgets the programs that were read first, of those that no job has any more.
func (s *shared) tidy(jobs map[*job]bool) {
	for i := 0; len(s.programs) > mostShelved && i < len(s.programs); {
		used := false
		for j := range jobs {
			used = used || j.program == s.programs[i].program
		}
		if used {
			i++
			continue
		}
		s.programs[i].exe.Close()
		s.programs = slices.Delete(s.programs, i, i+1)
	}
}

// guardOfAll is that of all jobs.
func (s *shared) guardOfAll() *guard.Guard {
	if s == nil {
		return nil
	}
	return s.guard
}

// newMeter is newMeter with one calibrator for all.
func (s *shared) newMeter(session *attach.Session, log *slog.Logger) *overhead.Meter {
	if s == nil {
		return overhead.NewMeter(session, log)
	}
	if s.meter == nil {
		s.meter = overhead.NewMeter(session, log)
	}
	return s.meter.Lend()
}

// close frees what the jobs had, which have ended.
func (s *shared) close() error {
	if s.meter != nil {
		s.meter.Close()
	}
	for _, p := range s.programs {
		p.exe.Close()
	}
	return s.guard.Close()
}
