package kerneltests

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/uprobe"
)

// midRun are the programs of the zoo that work for each line and wait in between, each with the
// mode in which it is compared.
var midRun = map[string]truth.Mode{"server": truth.Contiguous, "beneath": truth.Pieces}

// midRunCases are each of the flavours with one of the programs; or all of them.
func midRunCases() (cases []zoo.Case) {
	for p, name := range slices.Sorted(maps.Keys(midRun)) {
		for i, f := range []zoo.Flavour{
			{Compiler: "gcc", Opt: "-O0", PIE: true},
			{Compiler: "gcc", Opt: "-O2", PIE: true},
			{Compiler: "gcc", Opt: "-O3", Stripped: true},
			{Compiler: "gcc", Opt: "-O2", Shared: true},
		} {
			if matrix() || i%len(midRun) == p {
				cases = append(cases, zoo.Case{Program: zoo.Named(name), Flavour: f})
			}
		}
	}
	return cases
}

// midRunCycles is how often each is attached to and detached from in one run: 1,000 times in all by
// make soak, while the machine has much else to do.
func midRunCycles() int {
	if soak() {
		return 125
	}
	return 1
}

// They are attached to in one pause and detached from in the next.
func TestAttachInMidRun(t *testing.T) {
	builder, _ := programs(t, midRunCases())
	for _, c := range midRunCases() {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path, err := builder.Build(context.Background(), c.Program, c.Flavour)
			if err != nil {
				t.Fatal(err)
			}
			var libraries []string
			if c.Flavour.Shared {
				if err := uprobe.Detect().SupportsLibraries(); err != nil {
					t.Skip(err)
				}
				libraries = []string{c.Flavour.Library(c.Program)}
			}
			attachInMidRun(t, path, libraries, midRun[c.Program.Name])
		})
	}
}

// midRunTruth is what they do with a line for each cycle, and one before and one behind them.
func midRunTruth(ctx context.Context, path string, libraries []string) (*truth.Trace, error) {
	if built() != "" {
		return readTruth(path, "mid-run")
	}
	lines := "a\n" + strings.Repeat("b\n", midRunCycles()) + "c\n"
	target := exact.Target{Path: path, Env: zoo.Env(), Stdin: []byte(lines), Libraries: libraries}
	return target.Truth(ctx, exact.Expect{Limit: most * midRunCycles()})
}

func attachInMidRun(t *testing.T, path string, libraries []string, mode truth.Mode) {
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	want, err := midRunTruth(ctx, path, libraries)
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, ctx, path)
	s.round(t, "a")
	for range midRunCycles() {
		r := s.recordRound(t, ctx, "b", libraries)
		if err := truth.Compare(r.Streams, want, r.Routines, mode); err != nil {
			t.Error(err)
		}
		if r.Stat.Lost != 0 || r.Stat.Anomalies != 0 {
			t.Errorf("%d events lost, %d anomalies", r.Stat.Lost, r.Stat.Anomalies)
		}
		// What a thread was in the middle of is not reported.
		if got, least := r.Stat.Instructions, uint64(want.Total()/(midRunCycles()+2)*3/5); got <
			least {
			t.Errorf("%d instructions of one round recorded, of %d in all", got, want.Total())
		}
	}
	s.round(t, "c")
	s.stop(t, want)
}

// recordRound records what the server does for a line.
func (s *server) recordRound(t *testing.T, ctx context.Context, line string,
	libraries []string) *exact.Record {
	t.Helper()
	pristine := s.text(t)
	file := filepath.Join(t.TempDir(), "server.wpp")
	var flags []string
	for _, name := range libraries {
		flags = append(flags, "--lib", name)
	}
	recording, err := tracer.Attach(ctx, s.cmd.Process.Pid, file, flags...)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(s.text(t), pristine) {
		t.Error("attached, but no byte of text differs")
	}
	s.round(t, line)
	if err := recording.Detach(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.text(t), pristine) {
		t.Error("text differs after detaching")
	}
	r, err := tracer.Read(ctx, file, libraries...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server is a running server of the zoo.
type server struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
	said   strings.Builder
}

func startServer(t testing.TB, ctx context.Context, path string) *server {
	t.Helper()
	s := &server{cmd: exec.CommandContext(ctx, path)}
	s.cmd.Env = zoo.Env()
	var err error
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.output = bufio.NewReader(out)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// round lets the server work for a line and waits until it has answered.
func (s *server) round(t *testing.T, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(s.input, line); err != nil {
		t.Fatal(err)
	}
	answer, err := s.output.ReadString('\n')
	if err != nil {
		t.Fatalf("answer to %q: %v", line, err)
	}
	s.said.WriteString(answer)
}

// stop ends the server and compares all that it said and its status with those of the truth.
func (s *server) stop(t *testing.T, want *truth.Trace) {
	t.Helper()
	s.input.Close()
	rest, err := io.ReadAll(s.output)
	if err != nil {
		t.Fatal(err)
	}
	s.said.Write(rest)
	_ = s.cmd.Wait() // the status says it
	if got := s.said.String(); got != string(want.Stdout) {
		t.Errorf("output %q, not %q", got, want.Stdout)
	}
	if got := s.cmd.ProcessState.ExitCode(); got != want.Exit {
		t.Errorf("exit status %d, not %d", got, want.Exit)
	}
}

// text reads the executable segment of the server's image from its memory.
func (s *server) text(t *testing.T) []byte {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		if !strings.Contains(line, "r-xp") || !strings.HasSuffix(strings.TrimSpace(line),
			s.cmd.Path) {
			continue
		}
		var from, to int64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, to-from)
		if _, err := mem.ReadAt(text, from); err != nil {
			t.Fatal(err)
		}
		return text
	}
	t.Fatal("no text is mapped")
	return nil
}
