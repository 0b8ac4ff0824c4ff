package coverage

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
	"wpptrace/query"
)

// recordCommand records all that a command runs, into a file.
func recordCommand(t *testing.T, argv ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recorded.wpp")
	child, err := target.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	if _, err := record.Run(t.Context(), record.Options{Child: child, Output: file,
		StopWhenFull: true}, nil); err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	return file
}

// recordEachOnce returns a recordCommand that records each command once.
func recordEachOnce(t *testing.T) func(argv ...string) string {
	files := map[string]string{}
	return func(argv ...string) string {
		key := strings.Join(argv, "\x00")
		if files[key] == "" {
			files[key] = recordCommand(t, argv...)
		}
		return files[key]
	}
}

// pathsOf are how often the paths of the executable in recordings ran, by the address of the
// routine and their number.
func pathsOf(t *testing.T, files ...string) map[string]map[uint64]uint64 {
	t.Helper()
	all := map[string]map[uint64]uint64{}
	for _, file := range files {
		s, err := store.ReadFile(file, query.Sections()...)
		if err != nil {
			t.Fatal(err)
		}
		counts, err := query.NewFrequencies(s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Symbols {
			y := &s.Symbols[i]
			n := counts.Symbol(uint32(i))
			if n == 0 || y.IsMark || y.Path >= s.Routines[y.Routine].Paths {
				continue
			}
			at := strconv.FormatUint(s.Routines[y.Routine].Entry, 16)
			if all[at] == nil {
				all[at] = map[uint64]uint64{}
			}
			all[at][y.Path] += n
		}
	}
	return all
}

// newPathsAgree checks that paths which no baseline has are found, and nothing else: in just those
// routines, and as often, as a recording of the same input has paths that the baselines lack.
func newPathsAgree(t *testing.T, record func(argv ...string) string, baselines [][]string,
	input []string) {
	t.Helper()
	var files []string
	for _, argv := range baselines {
		files = append(files, record(argv...))
	}
	known := pathsOf(t, files...)
	want := map[string]uint64{}
	for routine, ran := range pathsOf(t, record(input...)) {
		for path, n := range ran {
			if known[routine] != nil && known[routine][path] == 0 {
				want[routine] += n
			}
		}
	}
	child, err := target.Start(input)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	got, notice := map[string]uint64{}, ""
	result, err := Residual(t.Context(), ResidualOptions{
		Options: Options{Child: child, Remark: func(line string) { notice += line }},
		Paths:   true, Baseline: readBaseline(t, files...),
		Found: func(e Event) {
			if n, ok := e.(*NewPaths); ok {
				got[n.Address] = n.Executions
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-child.Done()
	if !maps.Equal(got, want) || result.NewPaths != len(got) {
		t.Errorf("%q after %q: new paths %v, not %v: %s", input, baselines, got, want,
			result.Text())
	}
	t.Logf("%q after %q: %v; %s", input, baselines, got, notice)
}

// Baselines and an input of a program that has ways through code all of which has run.
func TestNewPaths(t *testing.T) {
	record := recordEachOnce(t)
	plain := compile(t, "ways.c", "-fno-inline")
	optimized := compile(t, "ways.c", "-fno-inline", "-O2")
	for _, c := range []struct {
		program   string
		baselines []string
		input     string
	}{
		{plain, []string{"10 01"}, "10 01"},
		{plain, []string{"10 01"}, "01 10 01"},
		{plain, []string{"10 01"}, "10 11 01"},
		{plain, []string{"10 01"}, "00 11 11"},
		{plain, []string{"10 01", "11"}, "11 10"},
		{plain, []string{"10 01", "11"}, "11 00"},
		{plain, []string{"10x 11x"}, "01x"},
		{plain, []string{"10x 11x"}, "11x 10x 10x"},
		{plain, []string{"00x 11x"}, "10x 10x"},
		{optimized, []string{"10x 01x"}, "11x 01x"},
		{optimized, []string{"10x 01x 11x"}, "11x 01x"},
	} {
		var baselines [][]string
		for _, ways := range c.baselines {
			baselines = append(baselines, append([]string{c.program}, strings.Fields(ways)...))
		}
		newPathsAgree(t, record, baselines,
			append([]string{c.program}, strings.Fields(c.input)...))
	}
}

// A coverage has no paths, and is refused by its name.
func TestNewPathsOfACoverage(t *testing.T) {
	program := compile(t, "ways.c")
	path := filepath.Join(t.TempDir(), "covered.wpp")
	if err := WriteSnapshot(path, coverCommand(t, program, "10"), Origin{}); err != nil {
		t.Fatal(err)
	}
	child, err := target.Start([]string{program})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	_, err = Residual(t.Context(), ResidualOptions{Options: Options{Child: child}, Paths: true,
		Baseline: readBaseline(t, path)})
	if want := fmt.Sprintf("the baseline %s has blocks alone", path); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, not %s", err, want)
	}
}

// A new path of a process that runs already is reported within a second, and not what the baseline
// has; where hits take too much of its time, paths are not looked at any more, and it goes on.
func TestNewPathsOfAServer(t *testing.T) {
	program := compile(t, "ways.c")
	base := readBaseline(t, recordCommand(t, program, "10", "01"))
	s := testenv.Start(t, exec.Command(program))
	ask(t, s, "10")
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found, notices := make(chan *NewPaths, 100), make(chan string, 100)
	began, done := make(chan bool), make(chan error)
	go func() {
		_, err := Residual(ctx, ResidualOptions{
			Options: Options{Process: p, Began: func(int, int) { began <- true },
				Remark: func(line string) { notices <- line }},
			Paths: true, Overhead: 0.01, Baseline: base,
			Found: func(e Event) {
				if n, ok := e.(*NewPaths); ok {
					found <- n
				}
			}})
		done <- err
	}()
	select {
	case <-began:
	case err := <-done:
		t.Fatal(err)
	}
	t.Log(<-notices)
	ask(t, s, "10")
	ask(t, s, "01")
	time.Sleep(500 * time.Millisecond)
	if len(found) > 0 {
		t.Errorf("what the baseline has run is new: %s", (<-found).Text())
	}
	asked := time.Now()
	ask(t, s, "11")
	n := <-found
	if took := time.Since(asked); n.Routine != "choose" || n.Executions != 1 || took > time.Second {
		t.Errorf("after %v: %s", took, n.Text())
	}
	for len(notices) == 0 {
		ask(t, s, "10x")
	}
	t.Log(<-notices)
	ask(t, s, "00")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(found) > 0 {
		t.Errorf("it is reported still: %s", (<-found).Text())
	}
	s.IsClean()
	s.End()
}

// New paths are looked at in the next process of the same program, too, and counted together.
func TestNewPathsAfterRestart(t *testing.T) {
	program := compile(t, "ways.c")
	base := readBaseline(t, recordCommand(t, program, "10", "01"))
	first := testenv.Start(t, exec.Command(program))
	p, err := target.Open(first.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, done := make(chan int, 10), make(chan error, 1)
	found, notices := make(chan *NewPaths, 100), 0
	var result Residue
	go func() {
		var err error
		result, err = Residual(ctx, ResidualOptions{
			Options: Options{Process: p, Began: func(pid, _ int) { began <- pid },
				Remark: func(string) { notices++ }},
			Paths: true, Restarts: true, Overhead: 1, Baseline: base,
			Found: func(e Event) {
				if n, ok := e.(*NewPaths); ok && n.Routine == "choose" {
					found <- n
				}
			}})
		done <- err
	}()
	wait := func() {
		select {
		case <-began:
		case err := <-done:
			t.Fatal(err)
		}
	}
	wait()
	ask(t, first, "11")
	if n := <-found; n.Routine != "choose" || n.Executions != 1 || n.PID != first.PID() {
		t.Error(n.Text())
	}
	first.End()
	second := testenv.Start(t, exec.Command(program))
	wait()
	ask(t, second, "11")
	ask(t, second, "00")
	ask(t, second, "10")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := <-found; n.Executions != 3 || n.PID != second.PID() || len(found) > 0 || notices != 1 {
		t.Errorf("%d notices, %d more: %s", notices, len(found), n.Text())
	}
	const ofMain = 1 // which returned in the first process
	if result.NewPaths != 1+ofMain || result.NewExecutions != 3+ofMain {
		t.Error(result.Text())
	}
	second.IsClean()
	second.End()
}
