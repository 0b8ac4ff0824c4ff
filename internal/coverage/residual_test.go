package coverage

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
)

// baselineOf is what a command runs.
func baselineOf(t *testing.T, argv ...string) *Baseline {
	t.Helper()
	path := filepath.Join(t.TempDir(), "base.wpp")
	if err := WriteSnapshot(path, coverCommand(t, argv...), Origin{}); err != nil {
		t.Fatal(err)
	}
	return readBaseline(t, path)
}

func readBaseline(t *testing.T, paths ...string) *Baseline {
	t.Helper()
	b, err := ReadBaseline(paths)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newLines are the lines that a command runs and a baseline has not.
func newLines(t *testing.T, b *Baseline, argv ...string) (lines []int, result Residue) {
	t.Helper()
	child, err := target.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	met := map[int]bool{}
	result, err = Residual(t.Context(), ResidualOptions{Options: Options{Child: child},
		Baseline: b, Found: func(e Event) { met[e.(*New).Line] = true }})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	return slices.Sorted(maps.Keys(met)), result
}

// What a baseline has run is not new; what an input adds is, and nothing else.
func TestResidual(t *testing.T) {
	program := compile(t, "arguments.c", "-O0")
	a, ab := baselineOf(t, program, "a"), baselineOf(t, program, "a", "b")
	for _, c := range []struct {
		name string
		base *Baseline
		argv []string
		want []int
	}{
		{"the same", a, []string{program, "a"}, nil},
		{"less", ab, []string{program, "a"}, nil},
		{"all", ab, []string{program, "b", "a", "b"}, nil},
		{"an input more", a, []string{program, "a", "b"}, []int{4, 9}},
	} {
		lines, result := newLines(t, c.base, c.argv...)
		if !reflect.DeepEqual(lines, c.want) || (result.New > 0) != (c.want != nil) ||
			result.NotWatched > 0 {
			t.Errorf("%s: lines %d are new, not %d: %+v", c.name, lines, c.want, result)
		}
	}
}

// Where more comes than may be reported, the first of each routine is, and the rest is counted.
func TestBurst(t *testing.T) {
	program := compile(t, "ways.c", "-O0")
	base := baselineOf(t, program) // which reads nothing
	child, err := target.Start([]string{program, "10x"})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	events, held := map[string]int{}, 0
	result, err := Residual(t.Context(), ResidualOptions{Options: Options{Child: child},
		Baseline: base, Most: 1, Found: func(e Event) {
			n := e.(*New)
			events[n.Routine]++
			held += n.Suppressed
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	for _, routine := range []string{"main", "choose", "loop", "same"} {
		if events[routine] == 0 {
			t.Errorf("%s is not reported: %v", routine, events)
		}
	}
	if result.NotReported == 0 || held > result.NotReported ||
		result.Reported+result.NotReported != result.New {
		t.Errorf("%+v, after %d", result, held)
	}
}

// With all of a run as its baseline nothing is new, with threads and exceptions too: a coverage, a
// recording, and both.
func TestNothingIsNew(t *testing.T) {
	for _, p := range gcovPrograms {
		program := compile(t, p.source, p.flags...)
		dir := t.TempDir()
		covered, recorded := filepath.Join(dir, "covered.wpp"), filepath.Join(dir, "recorded.wpp")
		if err := WriteSnapshot(covered, coverCommand(t, program), Origin{}); err != nil {
			t.Fatal(err)
		}
		child, err := target.Start([]string{program})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.Run(t.Context(), record.Options{Child: child, Output: recorded,
			StopWhenFull: true}, nil); err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		child.Process.Close()
		for _, files := range [][]string{{covered}, {recorded}, {covered, recorded}} {
			lines, result := newLines(t, readBaseline(t, files...), program)
			if result.New > 0 {
				t.Errorf("%s: lines %d are new to %q", p.source, lines, files)
			}
			if result.Watched < 3 {
				t.Errorf("%s: %+v", p.source, result)
			}
		}
	}
}

// A new command of a server is reported within a second, with its line and its callers.
func TestNewCommand(t *testing.T) {
	program := compile(t, "server.c", "-O0")
	start := func() (*testenv.Subject, *target.Process) {
		s := testenv.Start(t, exec.Command(program))
		ask(t, s, "add")
		p, err := target.Open(s.PID())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return s, p
	}
	s, p := start()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Run(ctx, Options{Process: p, Began: func(int, int) {
		go func() {
			fmt.Fprintln(s.In, "add")
			_, _ = s.Out.ReadString('\n')
			fmt.Fprintln(s.In, "other")
			_, _ = s.Out.ReadString('\n')
			cancel()
		}()
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "base.wpp")
	if err := WriteSnapshot(path, c, Origin{}); err != nil {
		t.Fatal(err)
	}

	s, p = start()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	found := make(chan *New, 100)
	done := make(chan error)
	go func() {
		_, err := Residual(ctx, ResidualOptions{Options: Options{Process: p,
			Began: func(int, int) { found <- nil }}, Baseline: readBaseline(t, path),
			Found: func(e Event) { found <- e.(*New) }})
		done <- err
	}()
	<-found
	ask(t, s, "add")
	time.Sleep(100 * time.Millisecond)
	if len(found) > 0 {
		t.Errorf("what the baseline has run is new: %s", (<-found).Text())
	}
	asked := time.Now()
	ask(t, s, "scale")
	var lines []int
	for range 3 { // blocks of scale and the one that calls it
		n := <-found
		lines = append(lines, n.Line)
		if n.Routine == "scale" && (len(n.Callers) < 2 || n.Callers[0].Routine != "run" ||
			n.Callers[0].Line != 17 || n.Callers[1].Routine != "main") {
			t.Errorf("the callers of scale are %+v", n.Callers)
		}
		if n.when.Before(asked.Add(-time.Second)) || n.when.After(time.Now()) ||
			n.Thread != s.PID() {
			t.Errorf("the event is %+v", n)
		}
	}
	if took := time.Since(asked); took > time.Second {
		t.Errorf("it is reported after %v", took)
	}
	if want := []int{17, 8, 10}; !reflect.DeepEqual(lines, want) {
		t.Errorf("lines %d are new, not %d", lines, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.IsClean()
	s.End()
}

func ask(t *testing.T, s *testenv.Subject, command string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.In, command); err != nil {
		t.Fatal(err)
	}
	s.Answer()
}

// A baseline of something else is refused in one line.
func TestOtherBaselines(t *testing.T) {
	program := compile(t, "arguments.c", "-O0")
	for _, c := range []struct {
		base *Baseline
		want string
	}{
		{baselineOf(t, compile(t, "arguments.c", "-O2"), "a"), "of another build of prog"},
		{&Baseline{}, "no baseline is of prog"},
	} {
		child, err := target.Start([]string{program})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Residual(t.Context(), ResidualOptions{Options: Options{Child: child},
			Baseline: c.base})
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, and says nothing of %q", err, c.want)
		}
		child.Process.Close()
	}
}

// When the process has ended, the next one of its name and build is watched. What was reported is
// not reported again.
func TestRestarts(t *testing.T) {
	program := compile(t, "server.c", "-O0")
	base := baselineOf(t, program) // which reads nothing
	start := func() (*testenv.Subject, *target.Process) {
		s := testenv.Start(t, exec.Command(program))
		p, err := target.Open(s.PID())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return s, p
	}
	first, p := start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, found, done := make(chan int, 10), make(chan *New, 100), make(chan error)
	var result Residue
	var scaled atomic.Bool
	go func() {
		var err error
		result, err = Residual(ctx, ResidualOptions{Options: Options{Process: p,
			Began: func(pid, _ int) { began <- pid }}, Baseline: base, Restarts: true,
			Found: func(e Event) {
				n := e.(*New)
				found <- n
				if n.Routine == "scale" {
					scaled.Store(true)
				}
			}})
		done <- err
	}()
	<-began
	ask(t, first, "add")
	first.End()
	second, _ := start()
	if pid := <-began; pid != second.PID() {
		t.Errorf("process %d is watched, not %d", pid, second.PID())
	}
	ask(t, second, "add")
	ask(t, second, "scale")
	testenv.Eventually(t, scaled.Load, "scale is reported")
	time.Sleep(200 * time.Millisecond)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	met := map[string]int{}
	for len(found) > 0 {
		n := <-found
		met[n.Address]++
		if met[n.Address] > 1 {
			t.Errorf("reported again: %s", n.Text())
		}
		if (n.Routine == "scale") != (n.PID == second.PID()) && n.Routine != "run" {
			t.Errorf("of another process: %s", n.Text())
		}
	}
	if result.New != len(met) || result.NotReported > 0 {
		t.Errorf("%+v, but %d were found", result, len(met))
	}
	second.IsClean()
	second.End()
}
