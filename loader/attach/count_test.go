package attach

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// TestCount: between two attachments hits of some sites are counted, of which nothing is reported
// and nothing stays.
func TestCount(t *testing.T) {
	s := load(t, "/bin/sh", "-c", "while :; do :; done")
	t.Cleanup(func() { s.Process.Signal(unix.SIGKILL) })
	if err := errors.Join(s.session.Attach(s.exe), s.session.Detach(),
		s.session.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	s.Release()
	settle := func() error { return nil }
	wait := func() error { return s.use(20 * time.Millisecond) }
	probes := s.session.images.plan.Sites
	sites := make([]int, len(probes))
	for i := range sites {
		sites[i] = i
	}
	hits, err := s.session.Groups().Count(sites, settle, wait)
	if err != nil || len(hits) != len(sites) || slices.Max(hits) == 0 {
		t.Fatalf("hits %d, %v", hits, err)
	}
	if err := checkText(s.Process, s.session.images.executable().image); err != nil {
		t.Error(err)
	}
	hits, err = s.session.Groups().Count(sites[:1], settle, wait)
	if err != nil || len(hits) != 1 || hits[0] != 0 {
		// where the program begins
		t.Errorf("hits %d where it does not come to, %v", hits, err)
	}
	far := slices.IndexFunc(probes, func(s plan.Site) bool { return s.Addr-probes[0].Addr > 4096 })
	if _, err := s.session.Groups().Count([]int{0, far - 1, far, len(sites) - 1},
		settle, wait); err != nil {
		t.Error(err)
	}
	trouble := errors.New("trouble")
	fails := func() error { return trouble }
	if _, err := s.session.Groups().Count(sites, settle, fails); !errors.Is(err, trouble) {
		t.Errorf("error %v", err)
	}
	if err := checkText(s.Process, s.session.images.executable().image); err != nil {
		t.Error(err)
	}
	if events, _ := drain(t, s.session); len(events) != 0 {
		t.Errorf("events %v", events)
	}
	if err := s.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if _, err := s.session.Groups().Count(sites, settle, wait); !errors.Is(err, target.ErrGone) {
		t.Errorf("of a process that has ended: %v", err)
	}
}

// use returns when the process has used so much CPU time, or has ended.
func (s *subject) use(more time.Duration) error {
	before, err := s.Times()
	for used := before; err == nil && used.CPU-before.CPU < more &&
		!s.Process.Wait(time.Millisecond); {
		used, err = s.Times()
	}
	return err
}
