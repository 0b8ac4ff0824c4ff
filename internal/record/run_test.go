package record_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/loader/guard"
	"wpptrace/loader/target"
	"wpptrace/query/profile"
)

// loop is a process that works until it is killed.
func loop(t *testing.T) *target.Process {
	t.Helper()
	return run(t, "bash", "-c", "while :; do x=$(((x * 31 + 7) % 1000)); done")
}

// run runs a command until the test ends.
func run(t *testing.T, name string, arguments ...string) *target.Process {
	t.Helper()
	if testing.Short() {
		t.Skip("it traces a process")
	}
	cmd := exec.Command(name, arguments...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	p, err := target.Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// names lists the types of events, those that repeat once.
func names(events []record.Event) (list []string) {
	for _, e := range events {
		if name := reflect.TypeOf(e).Name(); len(list) == 0 || list[len(list)-1] != name {
			list = append(list, name)
		}
	}
	return list
}

// What happens comes in its order: the plan before anything is attached, a snapshot on demand, and
// the end for the reason that the context was canceled with.
func TestEvents(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	wanted := make(chan struct{}, 1)
	path := filepath.Join(t.TempDir(), "x.wpp")
	var events []record.Event
	result, err := record.Run(ctx, record.Options{Process: loop(t), Output: path, Snapshot: wanted},
		func(e record.Event) {
			switch e := e.(type) {
			case record.Progress:
				if status := e.Status(); status.Paths == 0 || len(events) > 4 {
					return
				}
				wanted <- struct{}{}
			case record.SnapshotWritten:
				if s, err := store.ReadFile(e.Path); err != nil || s.Figures.Ended != "" {
					t.Errorf("the snapshot: %v, ended %q", err, s.Figures.Ended)
				}
				cancel(record.Cause(record.DurationOver))
			}
			events = append(events, e)
		})
	if err != nil {
		t.Fatal(err)
	}
	const want = "[Planned Forecast Attached Began Progress SnapshotWritten Progress Ended]"
	got := fmt.Sprint(names(events))
	if strings.Replace(got, " Progress Ended", " Ended", 1) != strings.Replace(want,
		" Progress Ended", " Ended", 1) {
		t.Errorf("%s, want %s", got, want)
	}
	f := result.Snapshot.Figures
	if !result.Written || f.Ended != string(record.DurationOver) || f.Lost != 0 || f.Hits == 0 ||
		result.Losses.Events != 0 {
		t.Errorf("%+v", f)
	}
}

// checkSamples checks that a snapshot says where the CPU time of a bash that computes went: what
// was not the kernel's to bash, whose routines are traced, or those that are hot, and less of it to
// libc.
func checkSamples(t *testing.T, s *wpp.Snapshot) {
	t.Helper()
	time, err := profile.CPUTime(s)
	if err != nil || time == nil {
		t.Fatalf("samples: %v, %v", time, err)
	}
	own, libc, kernel := 0.0, 0.0, 0.0
	for _, p := range time.Parts {
		switch {
		case p.Kind == profile.TracedTime || p.Kind == profile.ImageTime:
			own += p.Share.Value()
		case p.Kind == profile.KernelTime: // whoever else has the machine makes more of it
			kernel += p.Share.Value()
		case p.Name == "libc.so.6":
			libc += p.Share.Value()
		}
	}
	if own < libc || own+libc < 0.95*(1-kernel) || len(time.Routines) == 0 ||
		time.Profile.CPUTime <= 0 {
		t.Errorf("CPU time: %+v", time)
	}
}

// A busy process is traced in windows, which begin once and close again and again.
func TestWindowEvents(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := record.Options{
		Process: loop(t), Output: filepath.Join(t.TempDir(), "x.wpp"), Overhead: 0.2,
		Window: 5 * time.Millisecond,
	}
	var events []record.Event
	closed := 0
	result, err := record.Run(ctx, o, func(e record.Event) {
		switch e.(type) {
		case record.Progress, record.SitesCounted:
			return
		case record.WindowClosed:
			if closed++; closed == 3 {
				cancel()
			}
		}
		events = append(events, e)
	})
	if err != nil {
		t.Fatal(err)
	}
	checkSamples(t, result.Snapshot)
	got := strings.Join(names(events), " ")
	want := regexp.MustCompile("^HotSelected Planned Forecast Attached Began WindowOpened " +
		"WindowClosed WindowsBegin WindowOpened WindowClosed WindowOpened WindowClosed.* Ended$")
	if !want.MatchString(got) {
		t.Errorf("%s", got)
	}
	if result.Windows < 3 || result.Overhead <= 0 {
		t.Errorf("%d windows, overhead %v", result.Windows, result.Overhead)
	}
}

// TestHotRoutinesOfALargeProgram: of a program that is too large to be planned as a whole those
// routines are traced that it is in, and what they call.
func TestHotRoutinesOfALargeProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := record.Options{
		Process: run(t, "/usr/bin/python3", "-c", "while 1: pass"),
		Output:  filepath.Join(t.TempDir(), "x.wpp"), Overhead: 0.2,
	}
	var selected record.HotSelected
	result, err := record.Run(ctx, o, func(e record.Event) {
		switch e := e.(type) {
		case record.HotSelected:
			selected = e
		case record.WindowClosed:
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if selected.Samples == 0 || selected.Sampled < 1 || selected.Traced < selected.Sampled ||
		selected.Traced >= selected.All {
		t.Errorf("%+v", selected)
	}
	evaluates := func(r wpp.Routine) bool {
		return r.Name == "_PyEval_EvalFrameDefault" && r.LeftOut == ""
	}
	if s := result.Snapshot; !slices.ContainsFunc(s.Routines, evaluates) {
		t.Errorf("%d routines, without the interpreter's", len(s.Routines))
	}
}

// flat is a program of many routines that all take as long as each other.
func flat() string {
	const routines, blocks = 600, 12
	var text, table strings.Builder
	text.WriteString("static volatile int sum;\n")
	for i := range routines {
		fmt.Fprintf(&text, "__attribute__((noinline)) static void f%d(int x)\n{\n", i)
		for k := range blocks {
			fmt.Fprintf(&text, "\tif (x >> %d & 1)\n\t\tsum += %d;\n", k, i+k)
		}
		text.WriteString("}\n")
		fmt.Fprintf(&table, "\tf%d,\n", i)
	}
	return text.String() + "static void (*const table[])(int) = {\n" + table.String() + `};
int main(void)
{
	for (unsigned x = 1;; x = x * 1103515245 + 12345)
		table[(x >> 16) % (sizeof table / sizeof *table)](x >> 8);
}`
}

// TestFlatProfile: of a program whose time is spread over hundreds of routines, so that windows
// with the probes of all would hold it up for longer than they may, and would use up the budget
// before there is one, as many are traced as there are windows for.
func TestFlatProfile(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := record.Options{
		Process: run(t, testenv.CompileC(t, flat(), "-O1")),
		Output:  filepath.Join(t.TempDir(), "x.wpp"), Overhead: 0.05, Duration: 20 * time.Second,
	}
	var selected record.HotSelected
	var began, first time.Time
	closed := 0
	result, err := record.Run(ctx, o, func(e record.Event) {
		switch e := e.(type) {
		case record.HotSelected:
			selected, began = e, time.Now()
		case record.WindowOpened:
			if first.IsZero() {
				first = time.Now()
			}
		case record.WindowClosed:
			if closed++; closed == 2 {
				cancel()
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	const most = 150 // routines of 2 sites that are hit often, or more
	if selected.Sampled == 0 || selected.Sampled > most {
		t.Errorf("%+v", selected)
	}
	if closed < 2 || result.Snapshot.Figures.Windows < 2 {
		t.Errorf("%d windows in %v", closed, result.Snapshot.Figures.Duration)
	}
	t.Logf("%+v, the first window after %v", selected, first.Sub(began))
}

// A recording that is canceled before it begins leaves nothing, and its command has not run.
func TestCanceledBeforeItBegins(t *testing.T) {
	if testing.Short() {
		t.Skip("it traces a process")
	}
	dir := t.TempDir()
	command, err := target.Start([]string{"touch", filepath.Join(dir, "ran")})
	if err != nil {
		t.Fatal(err)
	}
	defer command.Process.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = record.Run(ctx, record.Options{Child: command, Output: filepath.Join(dir, "x.wpp")},
		nil)
	if !errors.Is(err, record.ErrInterrupted) || !strings.HasSuffix(err.Error(),
		"and the command has not run") {
		t.Errorf("%v", err)
	}
	<-command.Done()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// killGuard kills the guard that this process has started.
func killGuard(t *testing.T) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // a thread may have ended
		for _, pid := range strings.Fields(string(pids)) {
			command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
			if n, err := strconv.Atoi(pid); err == nil &&
				string(command) == "wpptrace\x00guard\x00" {
				if err := unix.Kill(n, unix.SIGKILL); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatal("there is no guard")
}

// A recording among several that is ended for their guard was killed says what happened. It was
// "<nil>" where the others' end came first.
func TestEndForALostGuardHasItsError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o := record.Options{Process: loop(t), Output: filepath.Join(t.TempDir(), "x.wpp")}
	var end record.Ended
	_, err := record.Run(ctx, o, func(e record.Event) {
		switch e := e.(type) {
		case record.Began:
			killGuard(t)
			cancel(record.Cause(record.GuardLost))
		case record.Ended:
			end = e
		}
	})
	if end.Reason != record.GuardLost || !errors.Is(end.Err, guard.ErrGone) {
		t.Errorf("it ended as %q, with %v, %v", end.Reason, end.Err, err)
	}
}

// What aborts a recording leaves no snapshot.
func TestAbort(t *testing.T) {
	abort, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	o := record.Options{Process: loop(t), Output: filepath.Join(dir, "x.wpp"), Abort: abort}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	result, err := record.Run(ctx, o, func(e record.Event) {
		if _, began := e.(record.Began); began {
			cancel()
			end()
		}
	})
	if result != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", result, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestUnwritten: snapshots can be had while the recording goes on, each with all that was recorded
// before; nothing is in its directory at the end.
func TestUnwritten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	var paths []uint64
	result, err := record.Run(ctx, record.Options{Process: loop(t), Unwritten: true,
		Output: filepath.Join(dir, "x.wpp")}, func(e record.Event) {
		p, is := e.(record.Progress)
		if !is || p.Status().Paths < 1000*uint64(len(paths)+1) {
			return
		}
		recorded := p.Status().Paths
		s, err := p.Snapshot()()
		if err != nil {
			t.Error(err)
		}
		flat, err := profile.Flat(s)
		const marks = 1 // of where the thread was met
		if err != nil || flat.Paths+marks != recorded {
			t.Errorf("%d paths in the snapshot, %d recorded: %v", flat.Paths, recorded, err)
		}
		if paths = append(paths, recorded); len(paths) == 3 {
			cancel()
		}
	})
	if err != nil || result.Written {
		t.Fatal(result, err)
	}
	if flat, err := profile.Flat(result.Snapshot); err != nil || flat.Paths < paths[2] {
		t.Errorf("%d paths at the end, %v before: %v", flat.Paths, paths, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
