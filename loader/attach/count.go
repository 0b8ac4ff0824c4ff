package attach

import (
	"errors"
	"fmt"

	"wpptrace/loader/plan"
)

// Count puts the probes of some sites of the executable in, alone, and takes them out when wait
// returns. The sites are in the order of their addresses. It returns how many hits they got while
// that ran; none is reported, so that it does not matter which cookies they have. Call it while no
// other probes stand. Cost: a few ms besides.
func (s *Session) Count(sites []plan.Site, wait func() error) (hits uint64, err error) {
	some := *s.images.executable()
	some.sites = sites
	if err = some.untouched(s.process); err == nil {
		hits, err = s.countAt(&some, wait)
	}
	if err != nil {
		if cause := s.changed(some.file); cause != nil {
			err = cause
		}
		return 0, fmt.Errorf("count hits in process %d (%s): %w", s.process.PID, s.process.Name,
			err)
	}
	return hits, nil
}

func (s *Session) countAt(m *mapped, wait func() error) (hits uint64, err error) {
	defer func() { err = errors.Join(err, m.unprobe()) }()
	if err := m.probe(s.guard, s.images.mechanism, s.process, s.objects.Hit); err != nil {
		return 0, err
	}
	if err := m.standing(s.process); err != nil {
		return 0, err
	}
	return s.unreported(wait)
}

// unreported is how many hits come, and are not reported, while something runs.
func (s *Session) unreported(during func() error) (hits uint64, err error) {
	before, err := s.Counters().Metrics()
	if err != nil {
		return 0, err
	}
	if err := during(); err != nil {
		return 0, err
	}
	after, err := s.Counters().Metrics()
	return after.Unreported - before.Unreported, err
}
