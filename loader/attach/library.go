package attach

import (
	"errors"
	"fmt"
	"os"

	"wpptrace/bpf"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// MaxLibraries is how many libraries a session may have.
const MaxLibraries = bpf.MaxLibraries

// CheckLibrary compares the code of a library in the memory of a process with its file's. It fails
// where a library cannot be observed.
func CheckLibrary(p *target.Process, im *image.Image, file *os.File) error {
	m := &mapped{image: im, file: file}
	if err := m.find(p); err != nil {
		return err
	}
	if m.absent {
		return errors.New("it is not mapped any more")
	}
	return checkText(p, im, m.base)
}

// find looks where a library is now: nowhere, or in one place. It is an error if it is in more.
func (m *mapped) find(p *target.Process) error {
	mappings, err := p.Mappings(m.file)
	if err != nil {
		return err
	}
	all := bases(mappings, m.image)
	if len(all) > 1 {
		return errors.New("it is mapped more than once")
	}
	if m.absent = len(all) == 0; !m.absent {
		m.base = all[0]
	}
	return nil
}

// present checks a library where it is mapped. Where the process has unmapped it meanwhile, or code
// has been mapped so that the next Refresh is to look, it is absent.
func (s *Session) present(m *mapped, check func(p *target.Process) error) error {
	if m.absent {
		return nil
	}
	err := check(s.process)
	if err == nil {
		return nil
	}
	if findErr := m.find(s.process); findErr != nil {
		return findErr
	}
	if m.absent = m.absent || s.Mapped(); m.absent {
		return nil
	}
	return err
}

// MayAdd fails when no other library can be observed.
func (s *Session) MayAdd() error {
	if len(s.images) > MaxLibraries {
		return fmt.Errorf("it is one too many: %d libraries can be observed: name fewer with --lib", MaxLibraries)
	}
	return s.way.Libraries()
}

// Add takes in the library of the plan's next part, whose file stays open until Close, and puts its
// probes in, if those of the others stand. Call it while the process is held, or before Attach, so
// that nothing of the library has run unseen.
func (s *Session) Add(file *os.File) error {
	defer guard.Prompt()()
	m := newMapped(&s.plan.Parts[len(s.images)], 0)
	m.file = file
	if err := s.add(m); err != nil {
		return fmt.Errorf("observe %s in process %d (%s): %w", m.image.Name, s.process.PID, s.process.Name, err)
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
	if err := s.present(m, m.untouched); err != nil {
		return err
	}
	if s.attached {
		if err := s.checkMemory(m); err != nil {
			return err
		}
	}
	s.images = append(s.images, m)
	if err := s.teachSites(m, len(s.images)-1); err != nil {
		return err
	}
	entries, err := s.calls.Add(partCalls(s.plan, len(s.images)-1))
	if err != nil {
		return err
	}
	if err := s.teachCalls(entries); err != nil {
		return err
	}
	if err := s.tellPlaces(); err != nil {
		return err
	}
	if !s.attached {
		return nil
	}
	if err := m.probe(s.guard, s.way, s.process, s.objects.Hit); err != nil {
		return err
	}
	return s.present(m, m.standing)
}

// places is where the libraries are, as the BPF program has it.
func (s *Session) places() (list [MaxLibraries]bpf.TracerLibrary) {
	for i, m := range s.images[1:] {
		list[i] = bpf.TracerLibrary{Bias: m.base, Size: textEnd(m.image), First: m.image.Segments[0].Addr, Offset: s.plan.Parts[i+1].Offset}
		if m.absent {
			list[i].Size = 0
		}
	}
	return list
}

// tellPlaces tells the BPF program of them.
func (s *Session) tellPlaces() error {
	err := s.objects.Libraries.Set(s.places())
	if err == nil {
		err = s.objects.LibraryCount.Set(uint32(len(s.images) - 1))
	}
	if err != nil {
		return fmt.Errorf("note where its libraries are: %w", err)
	}
	return nil
}

// Mapped reports whether the process has mapped code since Refresh. From Attach on, until Detach,
// it is held from then on until Refresh.
func (s *Session) Mapped() bool {
	var n uint32
	return s.shared && s.objects.Mapped.Get(&n) == nil && n != s.refreshed
}

// Refresh looks where the libraries are now. One that is mapped again has its probes again; one
// that is mapped twice is an error.
func (s *Session) Refresh() error {
	if err := s.objects.Mapped.Get(&s.refreshed); err != nil {
		return fmt.Errorf("read what process %d has mapped: %w", s.process.PID, err)
	}
	if err := s.findLibraries(); err != nil {
		return err
	}
	if !s.attached {
		return nil
	}
	for _, m := range s.images[1:] {
		m.bringTablesIn(s.process)
	}
	return s.eachLibrary((*mapped).standing)
}

// findLibraries finds the libraries and tells where they are, until they have stayed there: where
// the process is not held it may unmap one meanwhile.
func (s *Session) findLibraries() error {
	for told := false; ; told = true {
		before := s.places()
		for _, m := range s.images[1:] {
			if err := m.find(s.process); err != nil {
				return fmt.Errorf("observe %s in process %d (%s): %w", m.image.Name, s.process.PID, s.process.Name, err)
			}
		}
		if told && s.places() == before {
			return nil
		}
		if err := s.tellPlaces(); err != nil {
			return err
		}
	}
}

// eachLibrary calls a check for all libraries where they are mapped.
func (s *Session) eachLibrary(check func(m *mapped, p *target.Process) error) error {
	for _, m := range s.images[1:] {
		if err := s.present(m, func(p *target.Process) error { return check(m, p) }); err != nil {
			return err
		}
	}
	return nil
}

// Attached reports whether probes stand.
func (s *Session) Attached() bool { return s.attached }

// Settle says that all is dealt with that the process had mapped at the last Refresh. It reports
// whether somebody has let it go on before: then nothing has been reported since, and what its
// threads have done is not known.
func (s *Session) Settle() (escaped bool, err error) {
	var n uint32
	err = s.objects.Settled.Set(s.refreshed)
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

// partCalls lists the calls of a part as the kernel has them.
func partCalls(p *plan.Plan, part int) []bpf.TracerCall {
	lo, hi := p.Parts[part].Offset, ^uint64(0)
	if part+1 < len(p.Parts) {
		hi = p.Parts[part+1].Offset
	}
	var calls []bpf.TracerCall
	for ra, c := range p.Calls {
		if ra < lo || ra >= hi {
			continue
		}
		call := bpf.TracerCall{Address: ra, Depth: uint32(c.Depth)}
		if c.Spoken {
			call.Reported = 1
		}
		calls = append(calls, call)
	}
	return calls
}
