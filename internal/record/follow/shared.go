package follow

import (
	"fmt"
	"log/slog"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"wpptrace/internal/record"
	"wpptrace/internal/record/overhead"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

// shared is what the recordings of several processes have in common. It is used by one goroutine at
// a time.
type shared struct {
	guard    *guard.Guard
	meter    *overhead.Meter // lends its calibrator; nil: no recording has needed one yet
	programs []cachedProgram
}

// mostCached is how many programs are kept that no recording may need: to read and plan one takes
// up to some seconds.
const mostCached = 8

// A cachedProgram is a program that was read before, or why it cannot be recorded.
type cachedProgram struct {
	file    unix.Stat_t
	program *traced.Program
	exe     *os.File // what the program is read from still
	err     error
}

// errUnrecordable is the error of a program that cannot be recorded.
type errUnrecordable struct{ error }

func (e errUnrecordable) Unwrap() error { return e.error }

// Load is traced.LoadOf, but that what was read before is not read again, and that a program is
// recordable. A process that is born has the probes of the plan already.
func (s *shared) Load(p *target.Process, exe *os.File, sel traced.Selection,
	born bool) (*traced.Program, error) {
	name := p.File
	var now unix.Stat_t
	if err := unix.Fstat(int(exe.Fd()), &now); err != nil {
		return nil, fmt.Errorf("look at %s: %w", name, err)
	}
	if i := slices.IndexFunc(s.programs,
		func(p cachedProgram) bool { return sameFile(&p.file, &now) }); i >= 0 {
		known := &s.programs[i]
		if known.err == nil && !born {
			if err := known.program.CheckProcess(p, exe); err != nil {
				return nil, errUnrecordable{err}
			}
		}
		return known.program, known.err
	}
	made, err := newCached(p, exe, sel)
	if err != nil {
		return nil, err
	}
	made.file = now
	s.programs = append(s.programs, made)
	return made.program, made.err
}

func newCached(p *target.Process, exe *os.File,
	sel traced.Selection) (made cachedProgram, err error) {
	name := p.File
	// the recording's is closed with it
	own, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
	if err != nil {
		return made, fmt.Errorf("open %s: %w", name, err)
	}
	made.exe = own
	made.program, made.err = traced.LoadOf(p, own, sel)
	if made.err == nil {
		made.err = made.program.CheckRecordable(name)
	}
	if made.err != nil {
		made.program, made.err = nil, errUnrecordable{made.err}
	}
	return made, nil
}

// sameFile reports whether nothing was written to a file in between, as far as that can be seen.
func sameFile(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim &&
		a.Ctim == b.Ctim
}

// tidy forgets the programs that were read first, of those that no recording has any more.
func (s *shared) tidy(recorders map[*record.Recorder]bool) {
	for i := 0; len(s.programs) > mostCached && i < len(s.programs); {
		used := false
		for r := range recorders {
			used = used || r.Program() == s.programs[i].program
		}
		if used {
			i++
			continue
		}
		s.programs[i].exe.Close()
		s.programs = slices.Delete(s.programs, i, i+1)
	}
}

// Guard is that of all recordings.
func (s *shared) Guard() *guard.Guard { return s.guard }

// Meter returns a meter with one calibrator for all.
func (s *shared) Meter(session *attach.Session, log *slog.Logger) *overhead.Meter {
	if s.meter == nil {
		s.meter = overhead.NewMeter(session, log)
	}
	return s.meter.Lend()
}

// close frees what the recordings had, which have ended.
func (s *shared) close() error {
	if s.meter != nil {
		s.meter.Close()
	}
	for _, p := range s.programs {
		p.exe.Close()
	}
	return s.guard.Close()
}
