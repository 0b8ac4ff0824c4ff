package coverage

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/covered"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/target"
)

// gcovPrograms are compiled twice, with and without --coverage: gcov's lines are the truth.
var gcovPrograms = []struct {
	source string
	flags  []string
}{
	{"mixed.c", []string{"-O0"}},
	{"threads.c", []string{"-O0", "-pthread"}},
	{"exceptions.cc", []string{"-O0"}},
}

// A whole run of a command: lines are those of gcov.
func TestLinesOfCommand(t *testing.T) {
	for _, p := range gcovPrograms {
		t.Run(p.source, func(t *testing.T) {
			program := compile(t, p.source, p.flags...)
			got := coverCommand(t, program)
			dir := t.TempDir()
			counted := compileInto(t, dir, p.source, append(p.flags, "--coverage")...)
			if out, err := exec.Command(counted).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			compareLines(t, p.source, got, gcov(t, dir, p.source))
		})
	}
}

// The second half of a run, of which wpptrace has not seen the first one: lines are those that gcov
// counts from there on.
func TestLinesSinceAttaching(t *testing.T) {
	for _, p := range gcovPrograms {
		t.Run(p.source, func(t *testing.T) {
			flags := append(slices.Clone(p.flags), "-DPHASES")
			s := testenv.Start(t, exec.Command(compile(t, p.source, flags...)))
			awaitReady(t, s)
			process, err := target.Open(s.PID())
			if err != nil {
				t.Fatal(err)
			}
			defer process.Close()
			got, err := Run(t.Context(),
				Options{Process: process, Began: func(int, int) { s.Put(0) }})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			counted := testenv.Start(t, exec.Command(compileInto(t, dir, p.source,
				append(flags, "--coverage", "-DGCOV")...)))
			awaitReady(t, counted)
			counted.Put(0)
			counted.Cmd.Wait()
			compareLines(t, p.source, got, gcov(t, dir, p.source))
		})
	}
}

func awaitReady(t *testing.T, s *testenv.Subject) {
	t.Helper()
	if got := s.Answer(); got != "ready\n" {
		t.Fatalf("the program says %q", got)
	}
}

// Probes go when the observation is over, whatever the process does.
func TestNothingIsLeft(t *testing.T) {
	s := testenv.StartServer(t)
	process, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer process.Close()
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan struct{})
	c, err := Run(ctx, Options{Process: process, Began: func(int, int) {
		s.Put(3000)
		go func() {
			defer close(answered)
			_, _ = s.Out.ReadString('\n')
			cancel()
		}()
	}})
	<-answered
	if err != nil {
		t.Fatal(err)
	}
	s.IsClean()
	if r := NewReport(c); r.Blocks.Ran < 100 || r.Blocks.Ran == r.Blocks.Observed {
		t.Errorf("of bash's blocks ran %+v", r.Blocks)
	}
	s.Ask(1)
	s.End()
}

func compile(t *testing.T, source string, flags ...string) (program string) {
	return compileInto(t, t.TempDir(), source, flags...)
}

// compileInto compiles a program of testdata. gcov's files go to a directory.
func compileInto(t *testing.T, dir, source string, flags ...string) (program string) {
	t.Helper()
	compiler := "gcc"
	if strings.HasSuffix(source, ".cc") {
		compiler = "g++"
	}
	program = filepath.Join(dir, "prog")
	path, err := filepath.Abs(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler, append(flags, "-g", "-Wl,--build-id", "-o", program, path)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", compiler, err, out)
	}
	return program
}

// A gcovLine is what gcov says of a line.
type gcovLine struct {
	ran      bool
	branches int
	taken    int // of these
}

// gcov returns the lines of a source file that have code.
func gcov(t *testing.T, dir, source string) map[int]gcovLine {
	t.Helper()
	data, err := filepath.Glob(filepath.Join(dir, "*.gcda"))
	if err != nil || len(data) != 1 {
		t.Fatalf("gcov's data: %q, %v", data, err)
	}
	cmd := exec.Command("gcov", "-b", "-c", data[0])
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcov: %v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, source+".gcov"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, last := map[int]gcovLine{}, 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if branch, ok := strings.CutPrefix(s.Text(), "branch "); ok {
			l := lines[last]
			l.branches++
			if !strings.Contains(branch, "never") && !strings.Contains(branch, "taken 0 ") &&
				!strings.HasSuffix(branch, "taken 0") {
				l.taken++
			}
			lines[last] = l
			continue
		}
		fields := strings.SplitN(s.Text(), ":", 3)
		if len(fields) < 3 {
			continue
		}
		count := strings.TrimSuffix(strings.TrimSpace(fields[0]), "*")
		n, err := strconv.Atoi(strings.TrimSpace(fields[1]))
		if last = n; err != nil || n == 0 || count == "-" {
			continue
		}
		l := lines[n]
		l.ran = l.ran || count != "#####" && count != "====="
		lines[n] = l
	}
	return lines
}

// compareLines compares lines of a source file. Lines of a label alone have no instructions.
func compareLines(t *testing.T, source string, c *covered.Coverage,
	want map[int]gcovLine) {
	t.Helper()
	var got *covered.Source
	for _, s := range c.Sources() {
		if filepath.Base(s.Name) == source {
			got = &s
		}
	}
	if got == nil {
		t.Fatalf("no lines of %s are known", source)
	}
	text, err := os.ReadFile(filepath.Join("testdata", source))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	line := func(n int) string { return fmt.Sprintf("line %d: %s", n, lines[n-1]) }
	known, ran := map[int]bool{}, 0
	for _, l := range got.Lines {
		known[l.Line] = true
		gcovSays, ok := want[l.Line]
		switch {
		case !ok && strings.TrimSpace(lines[l.Line-1]) != "}":
			t.Logf("gcov does not know %s", line(l.Line))
		case ok && gcovSays.ran != l.Ran:
			t.Errorf("it has run: %v, by gcov %v: %s", l.Ran, gcovSays.ran,
				line(l.Line))
		}
		if l.Ran {
			ran++
		}
	}
	for n := range want {
		if !known[n] && !strings.HasSuffix(lines[n-1], ":") {
			t.Errorf("only gcov knows %s", line(n))
		}
	}
	compared := 0
	for _, b := range got.Branches {
		if want[b.Line].branches != len(covered.BranchStates{}.Outcomes) || len(b.Jumps) != 1 {
			continue // several jumps, which gcov may know in another order, or more of
		}
		taken := 0
		for _, state := range b.Jumps[0].Outcomes {
			if state == covered.Run {
				taken++
			}
		}
		if compared++; taken != want[b.Line].taken || slices.Contains(b.Jumps[0].Outcomes[:],
			covered.Unknown) {
			t.Errorf("of the branches %v are taken, by gcov %d: %s", b.Jumps[0].Outcomes,
				want[b.Line].taken, line(b.Line))
		}
	}
	if ran < 10 || compared < 2 {
		t.Errorf("only %d lines have run, and jumps of %d were compared", ran, compared)
	}
}

// A library that is loaded amid the run is observed from then on, and one that was loaded before
// from the beginning.
func TestLibraries(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libnumbers.so")
	build := func(output, source string, flags ...string) {
		path, err := filepath.Abs(filepath.Join("testdata", source))
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("gcc", append(flags, "-g", "-Wl,--build-id", "-o", output,
			path)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	build(library, "numbers.c", "-shared", "-fPIC")
	build(filepath.Join(dir, "prog"), "loads.c")
	s := testenv.Start(t, exec.Command(filepath.Join(dir, "prog"), library))
	ask(t, s, "nothing")
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Run(ctx, Options{Process: p,
		Selection: traced.Selection{Libraries: []string{"libnumbers*"}},
		Began: func(int, int) {
			go func() {
				defer cancel()
				for _, command := range []string{"load", "wait", "even"} {
					fmt.Fprintln(s.In, command)
					if _, err := s.Out.ReadString('\n'); err != nil {
						return
					}
				}
			}()
		}})
	if err != nil {
		t.Fatal(err)
	}
	want := covered.Source{Lines: []covered.SourceLine{{Line: 1, Ran: true}, {Line: 2, Ran: true},
		{Line: 3, Ran: true}, {Line: 5}, {Line: 6}, {Line: 7}, {Line: 8, Ran: true}}}
	for _, got := range c.Sources() {
		if filepath.Base(got.Name) == "numbers.c" {
			if fmt.Sprint(got.Lines) != fmt.Sprint(want.Lines) {
				t.Errorf("lines %v, want %v", got.Lines, want.Lines)
			}
			return
		}
	}
	t.Error("no line of the library is known")
}

// A command that becomes another program, as scripts do, and a library that never comes: both are
// said.
func TestWhatIsNotObservedIsSaid(t *testing.T) {
	child, err := target.Start([]string{"env", "sleep", "1000"})
	if err != nil {
		t.Fatal(err)
	}
	defer child.Process.Close()
	var said []string
	_, err = Run(t.Context(), Options{Child: child,
		Selection: traced.Selection{Libraries: []string{"nosuch*"}},
		Remark:    func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(child.Process.PID, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	<-child.Done()
	if len(said) != 2 || !strings.Contains(said[0], "another program by exec") ||
		!strings.Contains(said[1], `--lib "nosuch*" has named no library: they`) {
		t.Errorf("said: %q", said)
	}
}

// A command that is over soon: a library that it is linked with is observed all the same.
func TestLibraryOfShortCommand(t *testing.T) {
	dir := t.TempDir()
	build := func(output, source string, flags ...string) {
		t.Helper()
		name := filepath.Join(dir, output)
		if err := os.WriteFile(name+".c", []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("gcc", append([]string{"-g", "-o", name, name + ".c",
			"-Wl,--build-id"}, flags...)...).CombinedOutput(); err != nil {
			t.Fatalf("gcc: %v\n%s", err, out)
		}
	}
	build("libtwice.so", "int twice(int n)\n{\n\treturn 2 * n;\n}\n", "-shared", "-fPIC")
	build("prog", "#include <unistd.h>\nint twice(int n);\nint main(void)\n{\n\tusleep(250000);\n"+
		"\treturn twice(2);\n}\n", "-L"+dir, "-ltwice", "-Wl,-rpath,"+dir)
	const attempts = 5 // others may have the CPUs meanwhile
	for range attempts {
		child, err := target.Start([]string{filepath.Join(dir, "prog")})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Run(t.Context(), Options{Child: child,
			Selection: traced.Selection{Libraries: []string{"libtwice*"}}})
		if err != nil {
			t.Fatal(err)
		}
		<-child.Done()
		child.Process.Close()
		for _, s := range c.Sources() {
			if strings.HasSuffix(s.Name, "libtwice.so.c") && len(s.Lines) > 2 && s.Lines[1].Ran {
				return
			}
		}
	}
	t.Error("no line of the library has run")
}

// Thousands of probes take seconds to come out: that is said, as nothing else happens then.
func TestEndingIsSaid(t *testing.T) {
	s := testenv.Start(t, exec.Command("sleep", "1000"))
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	probes := 0
	if _, err := Run(ctx, Options{Process: p, Began: func(int, int) { cancel() },
		Ending: func(_, n int) { probes = n }}); err != nil || probes == 0 {
		t.Errorf("%d probes are taken out: %v", probes, err)
	}
}
