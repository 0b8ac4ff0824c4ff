package coverage

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// A new edge between blocks that have both run is reported within a second, once, with its lines
// and its callers. Where hits of its jump take too much of the process's CPU time, it is not
// watched any more, and nothing else goes.
func TestNewEdgeOfAServer(t *testing.T) {
	program := compile(t, "edges.c", "-O0")
	base := readBaseline(t, recordCommand(t, program, "1", "1x"))
	ask := func(t *testing.T, s *testenv.Subject, lines ...string) {
		for _, line := range lines {
			ask(t, s, line)
		}
	}
	watch := func(t *testing.T) (s *testenv.Subject, found chan *New, notices chan string,
		end func() Residue) {
		s = testenv.Start(t, exec.Command(program))
		p, err := target.Open(s.PID())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		ctx, cancel := context.WithCancel(t.Context())
		found, notices = make(chan *New, 100), make(chan string, 100)
		began, done := make(chan bool, 1), make(chan error, 1)
		var result Residue
		go func() {
			var err error
			result, err = Residual(ctx, ResidualOptions{
				Options: Options{Process: p, Began: func(int, int) { began <- true },
					Remark: func(line string) { notices <- line }},
				Edges: true, Overhead: 0.01, Baseline: base,
				Found: func(e Event) { found <- e.(*New) }})
			done <- err
		}()
		select {
		case <-began:
		case err := <-done:
			t.Fatal(err)
		}
		return s, found, notices, func() Residue {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			s.IsClean()
			s.End()
			return result
		}
	}
	edges := func(found chan *New) (list []string) {
		for len(found) > 0 {
			if n := <-found; n.To != nil {
				list = append(list, fmt.Sprintf("%s %d -> %d", n.Routine, n.Line, n.To.Line))
			}
		}
		return list
	}

	s, found, notices, end := watch(t)
	if line := <-notices; !strings.Contains(line, "edges of 1 jump that ran one way are watched") ||
		!strings.Contains(line, " hits for each path") {
		t.Errorf("it says of the cost %q", line)
	}
	ask(t, s, "1", "1")
	time.Sleep(200 * time.Millisecond)
	if list := edges(found); list != nil {
		t.Errorf("what the baseline has taken is new: %q", list)
	}
	asked := time.Now()
	ask(t, s, "0", "0", "1")
	n := <-found
	if took := time.Since(asked); n.To == nil || n.Routine != "choose" || n.Line != 6 ||
		n.To.Line != 8 || len(n.Callers) < 2 || n.Callers[0].Routine != "answer" ||
		took > time.Second {
		t.Errorf("after %v: %s", took, n.Text())
	}
	if r := end(); r.NewEdges != 1 || len(edges(found)) > 0 || r.JumpsGivenUp > 0 {
		t.Errorf("in all: %s", r.Text())
	}

	s, found, notices, end = watch(t)
	<-notices
	for len(notices) == 0 {
		ask(t, s, "1x")
	}
	if line := <-notices; !strings.Contains(line, "edges of 1 jump are not watched any more") {
		t.Errorf("it is given up: %q", line)
	}
	ask(t, s, "0", "1x")
	if r := end(); r.JumpsGivenUp != 1 || edges(found) != nil {
		t.Errorf("in all: %s", r.Text())
	}
}
