package kerneltests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/bpf/wire"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
)

// BenchmarkWhole traces busy programs whole with wpptrace, beside bpftrace counting the entries of
// the same routines, and the instructions that wpptrace's probes are on. Probes stand in a file's
// text, whoever runs it: each bpftrace has a copy of the program of its own, so that all stand at
// once, their runs can take turns, and none slows another's. Figures are medians of CPU times of
// the program.
func BenchmarkWhole(b *testing.B) {
	if _, err := exec.LookPath("bpftrace"); err != nil {
		testenv.Missing(b, fmt.Errorf("%w: apt-get install bpftrace", err))
	}
	for _, real := range zoo.Busy() {
		b.Run(real.Name, func(b *testing.B) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(b, err)
			}
			for b.Loop() {
				compareWhole(b, path, real)
			}
		})
	}
}

// A contender is a way to trace a program.
type contender struct {
	name   string
	path   string // its copy of the program
	probes int
	events uint64 // of one run
	took   []time.Duration
	close  func() (events uint64) // of all runs
}

const wholeRounds = 5

func compareWhole(b *testing.B, path string, real zoo.Real) {
	program := func() string { return copyProgram(b, path, filepath.Join(b.TempDir(), real.Name)) }
	run := func(path string) time.Duration { return runBusy(b, path, real, nil) }
	bare := &contender{name: "untraced", path: program()}
	whole := &contender{name: "wpptrace, every path", path: bare.path}
	file := filepath.Join(b.TempDir(), "whole.wpp")
	traced := func() time.Duration { return runBusy(b, whole.path, real, &file) }
	traced()
	snapshot := readSnapshot(b, file)
	whole.probes, whole.events = int(snapshot.Figures.Probes), snapshot.Figures.Hits
	others := []*contender{
		startBpftrace(b, "bpftrace, entries", program(), entryAddresses(snapshot)),
		startBpftrace(b, "bpftrace, same places", program(), hitPlaces(b, bare.path, real)),
	}
	for range wholeRounds {
		bare.took = append(bare.took, run(bare.path))
		whole.took = append(whole.took, traced())
		for _, c := range others {
			if c != nil {
				c.took = append(c.took, run(c.path))
			}
		}
	}
	base := medianOf(bare.took)
	report(b, whole, base)
	for _, c := range others {
		if c != nil {
			c.events = c.close() / wholeRounds
			report(b, c, base)
		}
	}
}

// report prints how much slower a contender makes the program, and what an event costs.
func report(b *testing.B, c *contender, base time.Duration) {
	took := medianOf(c.took)
	per := float64(took-base) / float64(c.events)
	b.Logf("%-22s %5d probes %9d events  %6.1f times slower (%v, %v untraced) %7.0f ns an event",
		c.name, c.probes, c.events, float64(took)/float64(base), took.Round(time.Millisecond),
		base.Round(time.Millisecond), per)
	unit := strings.NewReplacer(",", "", " ", "-").Replace(c.name)
	b.ReportMetric(per, "ns/event:"+unit)
	b.ReportMetric(float64(took)/float64(base), "x:"+unit)
}

// runBusy returns the CPU time of a run; with a file, of one that wpptrace records into it.
func runBusy(b *testing.B, path string, real zoo.Real, file *string) time.Duration {
	c, err := zoo.Start(append([]string{path}, real.Args...), real.Stdin)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Process.Close()
	before, err := c.Times()
	if err != nil {
		b.Fatal(err)
	}
	ended := func() error { return nil }
	if file != nil {
		recording, err := tracer.Attach(b.Context(), c.Process.PID, *file, "--max-slowdown", "0")
		if err != nil {
			b.Fatal(err)
		}
		ended = recording.Wait
	}
	c.Release()
	<-c.Done()
	after, err := c.Times()
	if err := errors.Join(err, ended()); err != nil {
		b.Fatal(err)
	}
	return after.Sub(before).CPU
}

func readSnapshot(b *testing.B, file string) *wpp.Snapshot {
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	s, err := format.Read(f)
	if err != nil {
		b.Fatal(err)
	}
	if s.Figures.Lost > 0 {
		b.Errorf("%d of %d hits lost", s.Figures.Lost, s.Figures.Hits)
	}
	return s
}

// entryAddresses lists those of the routines that were met.
func entryAddresses(s *wpp.Snapshot) (addresses []uint64) {
	for i := range s.Routines {
		if r := &s.Routines[i]; len(r.Blocks) > 0 {
			addresses = append(addresses, r.Entry)
		}
	}
	return addresses
}

// hitPlaces lists the addresses of the probes that are hit.
func hitPlaces(b *testing.B, path string, real zoo.Real) []uint64 {
	im, p := makePlan(b, path)
	c, err := zoo.Start(append([]string{path}, real.Args...), real.Stdin)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		b.Fatal(err)
	}
	defer exe.Close()
	s, err := attach.Load(c.Process, im, p, attach.Options{Ring: attach.DefaultRing})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(s.Attach(exe), s.Enable(true)); err != nil {
		b.Fatal(err)
	}
	c.Release()
	hit := map[uint64]bool{}
	for ended := false; !ended; {
		ended = c.Process.Wait(0)
		for {
			batch, err := s.Read(time.Now().Add(10 * time.Millisecond))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := range batch.Len() {
				if w := batch.Event(i); w.Kind() == wire.Hit {
					hit[p.Sites[w.Site()].Addr] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(hit))
}

// mostBpftrace bounds the probes given to one bpftrace: it takes them out one by one, 0.1 s each.
const mostBpftrace = 400

// startBpftrace starts bpftrace counting the executions of some instructions, and returns when its
// probes stand; nil if they are too many.
func startBpftrace(b *testing.B, name, path string, addresses []uint64) *contender {
	if len(addresses) > mostBpftrace {
		b.Logf("%-22s %5d probes: left out, bpftrace takes minutes to take more than %d out", name,
			len(addresses), mostBpftrace)
		return nil
	}
	var script strings.Builder
	for i, a := range addresses {
		script.WriteString([]string{"", ",\n"}[min(i, 1)])
		fmt.Fprintf(&script, "uprobe:%s:0x%x", path, a)
	}
	script.WriteString(" { @events = count(); }\nBEGIN { printf(\"ready\\n\"); }\n")
	file := filepath.Join(filepath.Dir(path), "count.bt")
	if err := os.WriteFile(file, []byte(script.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("bpftrace", "--unsafe", "-B", "line", file)
	cmd.Env = append(os.Environ(), "BPFTRACE_MAX_PROBES="+strconv.Itoa(mostBpftrace+1))
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	// should the benchmark end before it is closed
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out := bufio.NewReader(pipe)
	for line := ""; line != "ready\n"; { // which is printed when all probes stand
		if line, err = out.ReadString('\n'); err != nil {
			b.Fatalf("%s: not ready: %v", name, errors.Join(err, cmd.Wait()))
		}
	}
	return &contender{name: name, path: path, probes: len(addresses),
		close: func() (events uint64) {
			err := cmd.Process.Signal(unix.SIGINT)
			text, e := io.ReadAll(out)
			if err := errors.Join(err, e, cmd.Wait()); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			if _, err := fmt.Sscanf(strings.TrimSpace(string(text)), "@events: %d",
				&events); err != nil {
				b.Fatalf("%s: no count in %q: %v", name, text, err)
			}
			return events
		}}
}

func copyProgram(b *testing.B, from, to string) string {
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		b.Fatal(err)
	}
	return to
}

func medianOf(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
