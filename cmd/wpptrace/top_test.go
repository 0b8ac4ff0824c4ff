package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/interrupts"
	"wpptrace/internal/testenv"
	"wpptrace/internal/text"
	"wpptrace/query/report"
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

// With -o what was watched is a snapshot, and the last update says what is asked of that.
func TestTopWritesASnapshot(t *testing.T) {
	s := startWatched(t)
	w := startTracer(t, "top", "-p", strconv.Itoa(s.PID()), "-d", "1.5", "-o", "x.wpp")
	w.wait(0)
	asked, errs, status := wpptrace("hot", "--routines", "--json", filepath.Join(w.dir, "x.wpp"))
	var flat report.FlatJSON
	if status != 0 || json.Unmarshal([]byte(asked), &flat) != nil || len(flat.Routines) < 2 {
		t.Fatalf("status %d: %s%s; top printed %s", status, asked, errs, w.errs.String())
	}
	shown := w.stdout.String()
	last := shown[strings.LastIndex(shown, "s  status "):]
	for _, r := range flat.Routines[:2] {
		if want := fmt.Sprintf("  routine  %6s  %4s calls  %4s paths  %s ",
			fmt.Sprintf("%.1f%%", 100*r.Share), text.Short(float64(*r.Calls)),
			text.Short(float64(*r.Paths)), r.Routine); !strings.Contains(last, want) {
			t.Errorf("no line has %q:\n%s", want, last)
		}
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

// A topScreen is wpptrace top on a terminal.
type topScreen struct {
	t        *testing.T
	cmd      *exec.Cmd
	terminal *os.File
	mu       sync.Mutex
	shown    strings.Builder
}

// startScreen watches a process on a terminal of its own.
func startScreen(t *testing.T, pid int, env ...string) *topScreen {
	t.Helper()
	terminal, name := openTerminal(t)
	t.Cleanup(func() { terminal.Close() })
	must(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: 30, Col: 100}))
	side, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	defer side.Close()
	s := &topScreen{t: t, cmd: exec.Command("wpptrace", "top", "-p", strconv.Itoa(pid)),
		terminal: terminal}
	s.cmd.Dir = t.TempDir()
	s.cmd.Env = append(os.Environ(), append(env, "TERM=xterm-256color")...)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = side, side, side
	must(t, s.cmd.Start())
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	go func() {
		part := make([]byte, 1<<16)
		for {
			n, err := terminal.Read(part)
			s.mu.Lock()
			s.shown.Write(part[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return s
}

// shows waits for a text. What a screen changes is all that is sent of it: the text is to be new.
func (s *topScreen) shows(text string) {
	s.t.Helper()
	is := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return strings.Contains(s.shown.String(), text)
	}
	testenv.Eventually(s.t, is, "the terminal shows %q", text)
}

// viewer is the number of the process that shows the screen.
func (s *topScreen) viewer() (pid int) {
	s.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	must(s.t, err)
	for _, list := range lists {
		children, err := os.ReadFile(list)
		must(s.t, err)
		for _, child := range strings.Fields(string(children)) {
			line, err := os.ReadFile("/proc/" + child + "/cmdline")
			if err == nil && string(line) == "wpptrace\x00view-screen\x00" {
				pid, err = strconv.Atoi(child)
				must(s.t, err)
			}
		}
	}
	if pid == 0 {
		s.t.Fatal("wpptrace has no viewer")
	}
	return pid
}

// ends waits for the end of wpptrace, and checks that the terminal is as it was.
func (s *topScreen) ends() {
	s.t.Helper()
	if err := s.cmd.Wait(); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.t.Fatalf("%v: %q", err, s.shown.String())
	}
	s.shows("lost: 0 events")
	s.shows("\x1b[?1049l") // the other screen is left
	state, err := unix.IoctlGetTermios(int(s.terminal.Fd()), unix.TCGETS)
	must(s.t, err)
	if state.Lflag&unix.ICANON == 0 || state.Lflag&unix.ECHO == 0 {
		s.t.Error("the terminal is left as no shell wants it")
	}
}

// On a terminal there is a screen, by a process without any power; q ends it, and the process that
// was watched is as before.
func TestTopScreen(t *testing.T) {
	for _, c := range []struct {
		name, uid, source string
		env               []string
	}{
		{"root", "0\t0\t0\t0", "return x * 5 + 1;", []string{"SUDO_UID=", "SUDO_GID="}},
		// whose sources root keeps to itself
		{"sudo", "65534\t65534\t65534\t65534", "permission denied",
			[]string{"SUDO_UID=65534", "SUDO_GID=65534"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startWatched(t)
			w := startScreen(t, s.PID(), c.env...)
			for _, text := range []string{"ROUTINE", "HOT SUBPATH", "CPU time: ", "inner#",
				"longest stall", c.source} {
				w.shows(text)
			}
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.viewer()))
			must(t, err)
			for _, line := range []string{"Uid:\t" + c.uid, "Gid:\t" + c.uid, "NoNewPrivs:\t1",
				"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000",
				"CapEff:\t0000000000000000", "CapAmb:\t0000000000000000"} {
				if !strings.Contains(string(status), line+"\n") {
					t.Errorf("the viewer is not as %q:\n%s", line, status)
				}
			}
			_, err = w.terminal.WriteString("q")
			must(t, err)
			w.ends()
			s.IsClean()
		})
	}
}

// Where the viewer is killed, the recording ends, and the terminal is put back.
func TestTopViewerIsKilled(t *testing.T) {
	s := startWatched(t)
	w := startScreen(t, s.PID())
	w.shows("HOT SUBPATH")
	must(t, unix.Kill(w.viewer(), unix.SIGKILL))
	w.ends()
	s.IsClean()
}

// Where wpptrace is killed, its viewer puts the terminal back, and no probe stays.
func TestTopIsKilled(t *testing.T) {
	s := startWatched(t)
	w := startScreen(t, s.PID())
	w.shows("HOT SUBPATH")
	must(t, w.cmd.Process.Kill())
	w.shows("\x1b[?1049l")
	s.BecomesClean()
}

// Where the viewer does not go on, as one whose terminal is held, the recording ends all the same;
// a second signal ends wpptrace.
func TestTopViewerIsStopped(t *testing.T) {
	s := startWatched(t)
	w := startScreen(t, s.PID())
	w.shows("HOT SUBPATH")
	must(t, unix.Kill(w.viewer(), unix.SIGSTOP))
	must(t, w.cmd.Process.Signal(unix.SIGINT))
	s.BecomesClean()
	time.Sleep(2 * interrupts.SameWish)
	must(t, w.cmd.Process.Signal(unix.SIGINT))
	w.ends()
}
