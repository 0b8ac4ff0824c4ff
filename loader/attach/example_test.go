package attach_test

import (
	"errors"
	"fmt"
	"os"
	"time"

	"wpptrace/loader/attach"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/target"
)

// Counts the hits of a program from its first instruction to its exit.
func Example() {
	hits, err := countHits("/bin/true")
	fmt.Println(hits > 0, err)
	// Output: true <nil>
}

func countHits(path string) (hits uint64, err error) {
	im, err := image.OpenFile(path)
	if err != nil {
		return 0, err
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		return 0, err
	}
	p, err := planner.Make(program, planner.Options{})
	if err != nil {
		return 0, err
	}
	c, err := target.Start([]string{path})
	if err != nil {
		return 0, err
	}
	defer c.Process.Close()
	s, err := attachTo(c, im, p)
	if err != nil {
		c.Kill()
		return 0, err
	}
	defer s.Close()
	c.Release()
	<-c.Done()
	if err := s.Detach(); err != nil {
		return 0, err
	}
	for {
		b, err := s.Read(time.Now())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return hits, nil
		}
		if err != nil {
			return hits, err
		}
		hits = b.Hits
	}
}

func attachTo(c *target.Child, im *image.Image, p *plan.Plan) (*attach.Session, error) {
	exe, err := c.Process.Executable()
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	s, err := attach.Load(c.Process, im, p, attach.Options{Ring: attach.DefaultRing})
	if err != nil {
		return nil, err
	}
	if err := s.Attach(exe); err != nil {
		s.Close()
		return nil, err
	}
	return s, s.Enable(true)
}
