package followfork_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/followfork"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
)

const patience = time.Minute

// follow starts a program that is followed from its first instruction on.
func follow(t *testing.T, argv ...string) (*target.Child, *followfork.Follower) {
	t.Helper()
	c, err := target.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Process.Close)
	g, err := guard.Start(c.Process)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	f, err := followfork.Load(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Follow(c.Process); err != nil {
		t.Fatal(err)
	}
	c.Release()
	return c, f
}

// Each process stands where it is reported, has done nothing yet, and goes on when it is let go.
func TestEachIsStopped(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"true", ""},
		{"exec true", "exec true"},
		{"(true); exit 3", "born sh"},
		{"(:; exec /bin/true); exit 3", "born sh, exec true"},
		{"/bin/true; exit 3", "exec true"}, // which sh starts by vfork
		{"(exec sh -c 'exec sh -c \"exit 3\"'); exit $?", "born sh, exec sh, exec sh"},
	} {
		t.Run(c.script, func(t *testing.T) {
			child, f := follow(t, "sh", "-c", c.script)
			var got []string
			for over := false; !over; {
				n, err := f.Next(time.Now().Add(10 * time.Millisecond))
				if errors.Is(err, os.ErrDeadlineExceeded) {
					over = child.Process.Wait(0)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, stands(t, f, n))
				if err := f.Resume(n.PID); err != nil {
					t.Fatal(err)
				}
			}
			<-child.Done()
			status, err := child.ExitStatus()
			if want := 3 * strings.Count(c.script, "exit 3"); err != nil || status != want {
				t.Errorf("it ended with status %d, %v, not %d", status, err, want)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("reported %q, want %q", got, c.want)
			}
		})
	}
}

// stands waits for a process to be stopped, and says what was reported of it.
func stands(t *testing.T, f *followfork.Follower, n followfork.Started) string {
	t.Helper()
	p, err := target.Open(n.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	testenv.Eventually(t, p.Stopped, "%+v is stopped", n)
	if held, err := f.Holds(n.PID); err != nil || !held || n.Obstacle != nil {
		t.Errorf("%+v is held: %v, %v", n, held, err)
	}
	name := p.Comm
	if name == "dash" {
		name = "sh"
	}
	if n.Exec {
		return "exec " + name
	}
	return "born " + name
}

// Whoever stands when all is over is let go.
func TestDisband(t *testing.T) {
	child, f := follow(t, "sh", "-c", "/bin/true; exit 3")
	if _, err := f.Next(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if err := f.Unfollow(); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if status, err := child.ExitStatus(); status != 3 || err != nil {
		t.Errorf("it ended with status %d, %v", status, err)
	}
}
