package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/coverage"
	"wpptrace/internal/pathcount"
	"wpptrace/internal/testenv"
)

// A command's exit status and output are its own; what has run is known of it.
func TestCoverageOfCommand(t *testing.T) {
	program := testenv.CompileC(t, `#include <stdio.h>
int main(int argc, char **argv)
{
	if (argc > 1)
		puts("argument");
	else
		puts("none");
	return 7;
}`, "-g")
	file := filepath.Join(t.TempDir(), "x.info")
	out, errs, status := wpptrace("coverage", "--json", "-q", "--lcov", file, "--", program, "x")
	if status != 7 || out != "" {
		t.Errorf("status %d, stdout %q", status, out)
	}
	var r coverage.Report
	if err := json.Unmarshal([]byte(errs), &r); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	if r.Lines.Observed != r.Lines.Ran+1 || len(r.Files) != 1 || len(r.Files[0].NotRun) != 1 ||
		r.Files[0].NotRun[0] != 7 {
		t.Errorf("lines: %+v", r.Files)
	}
	lcov, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DA:5,1\n", "DA:7,0\n", "BRDA:4,0,0,1\n", "BRDA:4,0,1,0\n"} {
		if !strings.Contains(string(lcov), want) {
			t.Errorf("%q is not in\n%s", want, lcov)
		}
	}
}

// Killed at any moment, wpptrace leaves no probe in the process.
func TestCoverageKilled(t *testing.T) {
	for _, after := range []time.Duration{1300 * time.Millisecond, 1600 * time.Millisecond, 0} {
		t.Run(after.String(), func(t *testing.T) {
			s := testenv.StartServer(t)
			w := startTracer(t, "coverage", "-p", strconv.Itoa(s.PID()))
			if after > 0 {
				time.Sleep(after)
			} else {
				w.expect("attached to process")
			}
			w.signal(unix.SIGKILL)
			s.BecomesClean()
			s.Ask(10)
			s.End()
		})
	}
}

// Who kills the guard ends the observation, in one line: what had run is printed. The kernel would
// take 20 s to take out the probes of all of bash.
func TestCoverageGuardKilled(t *testing.T) {
	t.Parallel()
	s := testenv.StartServer(t)
	cmd := exec.Command("wpptrace", "coverage", "--json", "-F", "^(exec|expand|parse|eval|read)",
		"-p", strconv.Itoa(s.PID()))
	w := runTracer(t, cmd)
	w.expect("attached to process")
	s.Ask(1)
	must(t, unix.Kill(guardOf(t, cmd.Process.Pid), unix.SIGKILL))
	w.expect("its guard has been killed")
	w.wait(exitError)
	var r coverage.Report
	if err := json.Unmarshal([]byte(w.stdout.String()), &r); err != nil {
		t.Fatalf("%v: %s", err, w.stdout.String())
	}
	if r.Blocks.Ran < 100 || r.Blocks.Ran == r.Blocks.Observed {
		t.Errorf("of bash's blocks ran %+v", r.Blocks)
	}
	s.BecomesClean()
	s.End()
}

// Who kills the guard ends the counting of interesting paths: what was counted is printed.
func TestInterestingGuardKilled(t *testing.T) {
	program := compileRandomPaths(t)
	ran := filepath.Join(t.TempDir(), "ran.wpp")
	busy := testenv.Start(t, exec.Command(program))
	pid := strconv.Itoa(busy.PID())
	startTracer(t, "profile", "-p", pid, "-o", ran, "-d", "1s", "--overhead", "0",
		"--max-slowdown", "0").wait(0)
	cmd := exec.Command("wpptrace", "profile", "--json", "--interesting", ran, "-p", pid)
	w := runTracer(t, cmd)
	w.expect("attached to process")
	time.Sleep(200 * time.Millisecond)
	must(t, unix.Kill(guardOf(t, cmd.Process.Pid), unix.SIGKILL))
	w.expect("its guard has been killed")
	w.wait(exitError)
	var r pathcount.Result
	if err := json.Unmarshal([]byte(w.stdout.String()), &r); err != nil {
		t.Fatalf("%v: %s", err, w.stdout.String())
	}
	if len(r.Paths) == 0 || r.Paths[0].Count == 0 {
		t.Errorf("%s", w.stdout.String())
	}
	busy.BecomesClean()
}

// What a server does that its baseline has not done is printed, and written to the log; with that
// as a baseline, too, nothing is.
func TestResidualOfCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	program := testenv.CompileC(t, `int main(int argc, char **argv)
{
	int n = 0;
	for (int i = 1; i < argc; i++)
		if (argv[i][0] == 'b')
			n++;
	return n;
}`, "-g", "-Wl,--build-id")
	cover := func(to string, args ...string) {
		t.Helper()
		_, errs, _ := wpptrace(append([]string{"coverage", "-q", "-o", to, "--", program},
			args...)...)
		if _, err := os.Stat(to); err != nil {
			t.Fatal(errs)
		}
	}
	cover("a.wpp", "a")
	cover("b.wpp", "b")
	_, errs, status := wpptrace("residual", "--baseline", "a.wpp", "--log", "new.jsonl", "--",
		program, "a", "b")
	if status != 1 || !strings.Contains(errs, "main (prog.c:6)") ||
		!strings.Contains(errs, "1 block ran that no baseline has run") {
		t.Errorf("status %d: %s", status, errs)
	}
	log, err := os.ReadFile("new.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var n coverage.New
	if err := json.Unmarshal(log, &n); err != nil || n.Line != 6 || n.Routine != "main" {
		t.Errorf("%v: the log is %s", err, log)
	}
	_, errs, _ = wpptrace("residual", "--baseline", "a.wpp", "--baseline", "b.wpp", "--", program,
		"a", "b")
	if !strings.Contains(errs, "0 blocks ran that no baseline has run") {
		t.Errorf("with both as baselines: %s", errs)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--", program}, "no baseline: give --baseline FILE"},
		{[]string{"--baseline", "a.wpp", "--", "/bin/true"}, "no baseline is of true"},
		{[]string{"--baseline", "a.wpp", "--most", "0", "--", program}, "--most 0 is not positive"},
		{[]string{"--baseline", "none.wpp", "--", program}, "none.wpp: no such file"},
	} {
		_, errs, status := wpptrace(append([]string{"residual"}, c.args...)...)
		if status == 0 || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %d, %s", c.args, status, errs)
		}
	}
}

// A flag that would do nothing is refused, and a value that is none is named with what is expected.
func TestFlagsThatDoNothing(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"coverage", "-d", "1", "x.wpp"}, "--duration goes with no FILE, as x.wpp"},
		{[]string{"coverage", "-F", "main", "x.wpp"}, "--func goes with no FILE"},
		{[]string{"coverage", "-N", "main", "x.wpp"}, "--no-func goes with no FILE"},
		{[]string{"coverage", "--lib", "libc.*", "x.wpp"}, "--lib goes with no FILE"},
		{[]string{"coverage", "-p", "1", "./test"}, "a COMMAND stands behind --"},
		{[]string{"coverage", "--attach-all", "x", "x.wpp"}, "--attach-all goes with no FILE"},
		{[]string{"residual", "--baseline", "x.wpp", "--restarts", "--", "./test"},
			"--restarts needs -p"},
		{[]string{"residual", "--baseline", "x.wpp", "--paths", "--overhead", "5", "--", "./test"},
			"--overhead needs -p"},
		{[]string{"bounds"}, "no snapshot: name one or more"},
		{[]string{"profile", "--overlap", "x", "--", "./test"}, `"x" is not a whole number`},
	} {
		out, errs, status := wpptrace(c.args...)
		if status != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: status %d, %q, %q", c.args, status, out, errs)
		}
	}
}
