package attach

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
	"wpptrace/loader/guard"
)

// TestColdProbesStay: between windows the cold probes stand, and their hits are counted by site and
// not reported; with the hot ones they report as if all had gone in together; at the end none is
// left.
func TestColdProbesStay(t *testing.T) {
	s := load(t, "/bin/sh", "-c", "while :; do :; done")
	sites := len(s.session.images.plan.Sites)
	var cold []int
	for i := 0; i < sites; i += 2 {
		cold = append(cold, i)
	}
	half := len(cold) / 2
	list, err := s.session.Groups().PlaceCold(s.exe, cold[:half], cold[half:])
	if err != nil {
		t.Fatal(err)
	}
	s.Release()
	t.Cleanup(func() { unix.Kill(s.Process.PID, unix.SIGKILL) })
	stand := func(want int) {
		t.Helper()
		m := s.session.images.executable()
		if n, err := m.left(s.Process); err != nil || n != want {
			t.Errorf("%d probes stand, not %d: %v", n, want, err)
		}
	}
	stand(len(cold))
	testenv.Eventually(t, func() bool { return hits(t, s.session) > 1000 }, "cold sites are hit")
	p := planOf(t, "/bin/sh")
	second, err := Load(s.Process, p.image, p.plan, Options{Ring: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Attach(s.exe); !errors.Is(err, ErrBreakpoint) {
		t.Errorf("another session beside cold probes: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	stand(len(cold))
	const some = 10 * time.Millisecond // of CPU time
	for range 3 {
		if err := errors.Join(s.session.Attach(s.exe), s.session.Enable(false)); err != nil {
			t.Fatal(err)
		}
		stand(sites)
		if err := s.use(some); err != nil {
			t.Fatal(err)
		}
		before := hits(t, s.session)
		if err := s.use(some); err != nil {
			t.Fatal(err)
		}
		if after := hits(t, s.session); after != before {
			t.Errorf("%d hits were not reported in a window", after-before)
		}
		changes := s.session.Groups().Changes()
		if err := s.session.Pause(); err != nil {
			t.Fatal(err)
		}
		if change := s.session.Groups().Changes().Since(changes); change.Took <= 0 ||
			change.Took > 10*time.Second || change.Probes != sites-len(cold) {
			t.Errorf("the change: %+v", change)
		}
		stand(len(cold))
		if err := s.session.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := 0
		for {
			b, err := s.session.Read(time.Now())
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			events += b.Len()
		}
		if events == 0 {
			t.Error("a window has no events")
		}
	}
	counts, err := s.session.Counters().SiteHits(sites)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range counts {
		const straggling = 1000 // while probes went in and out
		if i%2 == 1 && n > straggling {
			t.Errorf("site %d, which is hot, has %d hits that were not reported", i, n)
		}
	}
	if err := s.session.Groups().RemoveCold(list[0]); err != nil {
		t.Fatal(err)
	}
	stand(len(cold) - half)
	if err := s.session.Groups().RemoveCold(list[1:]...); err != nil {
		t.Fatal(err)
	}
	stand(0)
	if _, err := s.session.Groups().PlaceCold(s.exe, cold[:1]); err != nil {
		t.Fatal(err)
	}
	stand(1)
	if err := s.session.Detach(); err != nil {
		t.Fatal(err)
	}
	stand(0)
}

// hits counts those that were not reported.
func hits(t *testing.T, s *Session) (n uint64) {
	t.Helper()
	m, err := s.Counters().Metrics()
	if err != nil {
		t.Fatal(err)
	}
	return m.Unreported
}

// TestChangeThatNeverEnds: hits wait for probes that change, but not for ever: whoever changes them
// may have been stopped.
func TestChangeThatNeverEnds(t *testing.T) {
	s := load(t, "/bin/sh", "-c", "while :; do :; done")
	sites := make([]int, len(s.session.images.plan.Sites))
	for i := range sites {
		sites[i] = i
	}
	if _, err := s.session.Groups().PlaceCold(s.exe, sites); err != nil {
		t.Fatal(err)
	}
	s.Release()
	t.Cleanup(func() { unix.Kill(s.Process.PID, unix.SIGKILL) })
	testenv.Eventually(t, func() bool { return hits(t, s.session) > 1000 }, "sites are hit")
	if err := s.session.images.setChanging(guard.AnyCPU); err != nil {
		t.Fatal(err)
	}
	before := hits(t, s.session)
	time.Sleep(longestChange / 2)
	const waits, most = time.Millisecond, 2
	if n := hits(t, s.session) - before; n > uint64(most*longestChange/waits) {
		t.Errorf("%d hits in %v: they do not wait", n, longestChange/2)
	}
	time.Sleep(longestChange)
	testenv.Eventually(t, func() bool { return hits(t, s.session) > before+100_000 },
		"they wait no more")
}

// Where a cold probe cannot stand, none of its group does, and the site stays one of the others.
func TestColdProbeOverBreakpoint(t *testing.T) {
	s := load(t, "/bin/true")
	s.poke(t, breakpoint)
	if _, err := s.session.Groups().PlaceCold(s.exe, []int{0, 1}); !errors.Is(err, ErrBreakpoint) {
		t.Errorf("over a breakpoint: %v", err)
	}
	if m := s.session.images.executable(); len(m.cold) > 0 || len(m.hot().sites) != len(m.sites) {
		t.Errorf("%d cold groups, %d hot sites of %d", len(m.cold), len(m.hot().sites), len(m.sites))
	}
	if err := s.session.Close(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
}
