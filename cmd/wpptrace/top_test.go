package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// toWatch works all the time, and takes two paths in turn through inner.
const toWatch = `
static int inner(int x) {
	if (x % 3)
		return x * 5 + 1;
	return x - 7;
}
int (*volatile call)(int) = inner;
int main(void) {
	int x = 1;
	for (;;)
		x = call(x) & 0xffff;
}`

// startWatched starts a program to be watched.
func startWatched(t *testing.T) *testenv.Subject {
	t.Helper()
	return testenv.Start(t, exec.Command(testenv.CompileC(t, toWatch, "-g", "-O1")))
}

// Where there is no terminal, lines say what is recorded, once in an interval. The process is let
// alone afterwards, and no file is left.
func TestTopLines(t *testing.T) {
	s := startWatched(t)
	w := startTracer(t, "top", "-p", strconv.Itoa(s.PID()), "-d", "3", "--interval", "500ms")
	w.wait(0)
	out := w.stdout.String()
	if n := strings.Count(out, "s  status "); n < 3 || n > 8 {
		t.Errorf("%d updates in 3 s", n)
	}
	for _, line := range []string{
		`^ +\d\.\ds  status   \d+ windows?  \S+ paths  lost 0 events  overhead \S+% of 5%  ` +
			`longest stall [\d.]+ms of 20ms$`,
		`^ +\d\.\ds  time     \d.*% traced routines.* samples; `,
		`^ +\d\.\ds  routine +\d+\.\d%  \S+ calls  \S+ paths  inner  #\d+ \d+% prog\.c:3-[46]$`,
		`^ +\d\.\ds  subpath +\d+\.\d%  \S+ times  .*inner#\d+ > main#\d+`,
	} {
		if !regexp.MustCompile("(?m)" + line).MatchString(out) {
			t.Errorf("no line is as %s:\n%s", line, out)
		}
	}
	if errs := w.errs.String(); !strings.Contains(errs, "lost: 0 events") ||
		strings.Contains(errs, "recording process") {
		t.Error(errs)
	}
	if files := w.files(); len(files) > 0 {
		t.Errorf("files: %q", files)
	}
	s.IsClean()
}

// With -o what was watched is a snapshot.
func TestTopWritesASnapshot(t *testing.T) {
	s := startWatched(t)
	w := startTracer(t, "top", "-p", strconv.Itoa(s.PID()), "-d", "1", "-o", "x.wpp")
	w.wait(0)
	if out, errs, status := wpptrace("hot", "--routines", filepath.Join(w.dir, "x.wpp")); status !=
		0 || !strings.Contains(out, "inner") {
		t.Errorf("status %d: %s%s; it printed %s", status, out, errs, w.errs.String())
	}
	s.IsClean()
}

// A command line that cannot be meant is refused before anything is attached.
func TestTopRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nothing to watch: give -p PID"},
		{[]string{"-p", "1", "--interval", "1ms"}, "--interval 1ms is below 100ms"},
		{[]string{"-p", "1", "sleep"}, "no argument expected"},
		{[]string{"-p", "1", "-o", "-"}, "-o -: a snapshot is a file"},
	} {
		out, errs, status := wpptrace(append([]string{"top"}, c.args...)...)
		if status != exitUsage || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: status %d: %s", c.args, status, fmt.Sprint(out, errs))
		}
	}
}
