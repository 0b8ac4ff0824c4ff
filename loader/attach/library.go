package attach

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// MaxLibraries is how many libraries a session may have.
const MaxLibraries = bpf.MaxLibraries

// LibraryObstacles is Obstacles for a library. It fails, too, where it is mapped more than once.
func LibraryObstacles(p *target.Process, im *image.Image, file *os.File) ([]Obstacle, error) {
	m := &mapped{image: im, file: file}
	if err := m.find(p); err != nil {
		return nil, err
	}
	if m.absent {
		return nil, errNotMapped
	}
	return m.obstacles(p)
}

// LibraryBase is Base for a library whose file is open. It fails, too, where that is mapped more
// than once, or not at all.
func LibraryBase(p *target.Process, im *image.Image, file *os.File) (uint64, error) {
	m := &mapped{image: im, file: file}
	if err := m.find(p); err != nil {
		return 0, err
	}
	if m.absent {
		return 0, errNotMapped
	}
	return m.base, nil
}

var errNotMapped = errors.New("it is not mapped any more")

// MayAdd fails when no other library can be traced.
func (s *Session) MayAdd() error {
	if len(s.images.list) > MaxLibraries {
		return remedy.Errorf(remedy.FewerLibs, "it is one too many: %d libraries can be traced",
			MaxLibraries)
	}
	return s.images.mechanism.SupportsLibraries()
}

// Add takes in the library of the plan's next part, whose file stays open until Close, and puts its
// probes in, if those of the others stand. Call it while the process is held, or before Attach, so
// that nothing of the library has run unseen.
func (s *Session) Add(file *os.File) error {
	defer guard.RaisePriority()()
	m := newMapped(&s.images.plan.Parts[len(s.images.list)], 0)
	m.file = file
	if err := s.add(m); err != nil {
		return traceError(m, s.process, err)
	}
	return nil
}

func (s *Session) add(m *mapped) error {
	if err := s.MayAdd(); err != nil {
		return err
	}
	if err := m.find(s.process); err != nil {
		return err
	}
	list := []place{{m, m.hot()}}
	if err := s.images.check(list, (*mapped).untouched); err != nil {
		return err
	}
	if s.attached {
		if err := s.images.checkMemory(m); err != nil {
			return err
		}
	}
	if err := s.images.add(m); err != nil || !s.attached {
		return err
	}
	if err := s.images.put(list, s.guard); err != nil {
		return err
	}
	return s.images.check(list, (*mapped).standing)
}

// Mapped reports whether the process has mapped code since Refresh. From Attach on, until Detach,
// it is held from then on until Refresh.
func (s *Session) Mapped() bool { return s.images.hasMapped() }

// Refresh looks where the libraries are now. One that is mapped again has its probes again; one
// that is mapped twice is an error.
func (s *Session) Refresh() error {
	if err := s.images.refresh(); err != nil || !s.attached {
		return err
	}
	for _, m := range s.images.list[1:] {
		m.bringTablesIn(s.process)
	}
	list := slices.DeleteFunc(s.images.in(),
		func(at place) bool { return at.mapped == s.images.executable() })
	return s.images.check(list, (*mapped).standing)
}

// Attached reports whether probes stand.
func (s *Session) Attached() bool { return s.attached }

// Settle says that all is dealt with that the process had mapped at the last Refresh. It reports
// whether somebody has let it go on before: then nothing has been reported since, and what its
// threads have done is not known.
func (s *Session) Settle() (escaped bool, err error) {
	var n uint32
	err = s.objects.Settled.Set(s.images.refreshed)
	if err == nil {
		err = s.objects.Escaped.Get(&n)
	}
	if err == nil {
		err = s.objects.Escaped.Set(uint32(0))
	}
	if err != nil {
		return false, fmt.Errorf("let process %d go on: %w", s.process.PID, err)
	}
	return n != 0, nil
}
