package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/interrupts"
	"wpptrace/internal/record"
	"wpptrace/internal/testenv"
	"wpptrace/loader/target"
	"wpptrace/query"
)

// A process that is attached to in mid-run answers and ends as one that nobody traces, and is left
// without a probe.
func TestAttach(t *testing.T) {
	questions := []int{20, 50, 30, 10}
	want := answers(t, questions...)
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
	w.expect("slow-down: some")
	w.expect("recording process")
	var got []string
	for i, n := range questions {
		if i == len(questions)-1 {
			w.signal(os.Interrupt)
			w.expect("interrupted")
			w.wait(0)
			s.IsClean()
		}
		got = append(got, s.Ask(n))
	}
	s.End()
	if !slices.Equal(got, want) {
		t.Errorf("the server answered %q, untraced %q", got, want)
	}
	stat := checkRecording(t, w, "x.wpp", 10000)
	if stat.ReportTime <= 0 || stat.HitTime <= stat.ReportTime {
		t.Errorf("%d ns a hit, %d of them not the bare probe's", stat.HitTime, stat.ReportTime)
	}
	if !strings.Contains(w.stdout.String(), "SUBPATH") {
		t.Errorf("no hot subpaths on stdout: %s", w.stdout.String())
	}
	if !strings.HasSuffix(w.errs.String(), "\nlost: 0 events\n") {
		t.Errorf("the last line does not report losses: %s", w.errs.String())
	}
}

// checkRecording fails the test unless the snapshot is a good one of so many paths or more.
func checkRecording(t *testing.T, w *tracer, name string, least uint64) query.Stat {
	t.Helper()
	stat := statOf(t, w, name)
	if stat.Paths < least || stat.Anomalies != 0 || stat.Lost != 0 {
		t.Errorf("snapshot %s: %d paths, %d anomalies, %d lost; want %d paths or more, no "+
			"anomaly, nothing lost", name, stat.Paths, stat.Anomalies, stat.Lost, least)
	}
	return stat
}

// endedOn fails the test unless a snapshot says that the recording ended for that reason.
func endedOn(t *testing.T, w *tracer, name string, want record.Reason) {
	t.Helper()
	if got := statOf(t, w, name).Ended; got != string(want) {
		t.Errorf("snapshot %s: the recording ended on %q, want %q", name, got, want)
	}
}

func statOf(t *testing.T, w *tracer, name string) query.Stat {
	t.Helper()
	s, err := store.ReadFile(w.path(name))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := query.NewStat(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return stat
}

// SIGUSR2 writes a snapshot, and the recording goes on; the next snapshot keeps it as .old.
func TestSnapshotOnSignal(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
	w.expect("recording process")
	s.Ask(20)
	for again := true; again; again = statOf(t, w, "x.wpp").Paths < 1000 {
		// until what it has done has been read
		w.signal(unix.SIGUSR2)
		w.expect("recording goes on")
	}
	s.Ask(20)
	w.signal(unix.SIGTERM)
	w.wait(0)
	first := checkRecording(t, w, "x.wpp.old", 1000)
	second := checkRecording(t, w, "x.wpp", 2000)
	if second.Paths <= first.Paths {
		t.Errorf("%d paths at the end, %d in the middle", second.Paths, first.Paths)
	}
	endedOn(t, w, "x.wpp.old", "")
	endedOn(t, w, "x.wpp", record.Interrupted)
	s.IsClean()
	s.End()
}

// A terminal that goes away, or that somebody wants to be rid of what runs in it, loses no
// recording.
func TestOtherSignalsThatEnd(t *testing.T) {
	arrived := make(chan os.Signal, 1)
	// so that the recorder does not inherit that it is ignored, where the tests run under nohup
	signal.Notify(arrived, unix.SIGHUP)
	defer signal.Stop(arrived)
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGQUIT} {
		s := testenv.StartServer(t)
		w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
		w.expect("recording process")
		s.Ask(20)
		w.signal(sig)
		w.wait(0)
		checkRecording(t, w, "x.wpp", 1000)
		s.IsClean()
		s.End()
	}
}

// TestReportUnprinted: hot subpaths that cannot be printed are an error, and where the recording is
// is printed all the same. It was not.
func TestReportUnprinted(t *testing.T) {
	s := testenv.StartServer(t)
	cmd := exec.Command("sh", "-c", `exec wpptrace "$@" >/dev/full`, "sh", "-p",
		strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
	cmd.Dir = t.TempDir()
	w := runTracer(t, cmd)
	w.expect("recording process")
	s.Ask(20)
	w.signal(unix.SIGTERM)
	w.expect("snapshot: x.wpp")
	w.expect("lost: 0")
	w.expect("wpptrace: write hot subpaths: ")
	w.wait(exitError)
	checkRecording(t, w, "x.wpp", 1000)
	s.End()
}

// --snapshot-every writes one each time, and the recording goes on.
func TestSnapshotEvery(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--snapshot-every", "0.3")
	w.expect("recording process")
	for _, least := range []uint64{1000, 2000} {
		s.Ask(20)
		const most = 20 // snapshots until all of that is in one
		for range most {
			w.expect("recording goes on")
			if statOf(t, w, "x.wpp").Paths >= least {
				break
			}
		}
		checkRecording(t, w, "x.wpp", least)
	}
	w.signal(unix.SIGTERM)
	w.wait(0)
	checkRecording(t, w, "x.wpp", 2000)
	s.IsClean()
	s.End()
}

// Snapshots that are asked for faster than they can be written keep nobody from recording, and from
// ending.
func TestSnapshotsWithoutEnd(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0",
		"--ring-size", "16M")
	w.expect("slow-down: some")
	enough, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-enough:
				return
			case <-time.After(time.Millisecond):
				w.cmd.Process.Signal(unix.SIGUSR2)
			}
		}
	}()
	w.expect("recording process")
	for range 20 {
		s.Ask(20)
	}
	close(enough)
	<-stopped
	w.expect("recording goes on")
	w.signal(os.Interrupt)
	w.wait(0)
	if checkRecording(t, w, "x.wpp", 10000); !slices.Equal(w.files(),
		[]string{"x.wpp", "x.wpp.old"}) {
		t.Errorf("files: %q", w.files())
	}
	s.IsClean()
	s.End()
}

// Where the process is killed, the signal is printed.
func TestTargetIsKilled(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0")
	w.expect("recording process")
	if err := s.Cmd.Process.Signal(unix.SIGSEGV); err != nil {
		t.Fatal(err)
	}
	w.expect(fmt.Sprintf("wpptrace: process %d (bash) was killed by SIGSEGV", s.PID()))
	w.wait(0)
	if stat := statOf(t, w, fmt.Sprintf("bash-%d.wpp", s.PID())); stat.Signal !=
		uint32(unix.SIGSEGV) || stat.Status != nil {
		t.Errorf("killed by signal %d, exit status %v", stat.Signal, stat.Status)
	}
}

// A recording ends with its process, and says so.
func TestTargetEnds(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "--json")
	w.expect("recording process")
	s.Ask(5)
	s.End()
	w.expect(fmt.Sprintf("wpptrace: process %d (bash) has exited with status 7", s.PID()))
	w.wait(0)
	if names := w.files(); len(names) != 1 || names[0] != fmt.Sprintf("bash-%d.wpp", s.PID()) {
		t.Errorf("files: %q", names)
	}
	if status := statOf(t, w, fmt.Sprintf("bash-%d.wpp", s.PID())).Status; status == nil ||
		*status != 7 {
		t.Errorf("exit status %v", status)
	}
	if !strings.HasPrefix(w.stdout.String(), `{"schema_version":2,`) {
		t.Errorf("no figures on stdout: %s", w.stdout.String())
	}
	endedOn(t, w, w.files()[0], record.Exited)
}

func TestDuration(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-d", "300ms", "-q", "-o", "x.wpp")
	w.wait(0)
	if w.errs.Len() > 0 || w.stdout.Len() > 0 {
		t.Errorf("with -q: %s%s", w.errs.String(), w.stdout.String())
	}
	if names := w.files(); !slices.Equal(names, []string{"x.wpp"}) {
		t.Errorf("files: %q", names)
	}
	endedOn(t, w, "x.wpp", record.DurationOver)
	s.IsClean()
	s.End()
}

// A recording of a process that does nothing of its own says so.
func TestNothingRuns(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for state := ""; state != "S"; { // it sleeps by then
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(stat), "(sleep) ")
		state, _, _ = strings.Cut(after, " ")
	}
	check := func(why string) {
		t.Helper()
		_, errs, status := wpptrace("-p", strconv.Itoa(cmd.Process.Pid), "-d", "0.1", "-o",
			t.TempDir()+"/x.wpp")
		want := "wpptrace: nothing of sleep's traced code ran while it was recorded: " + why +
			"\nlost: 0 events\n"
		if status != 0 || !strings.HasSuffix(errs, want) {
			t.Errorf("status %d: %q, want %q", status, errs, want)
		}
	}
	check("it may sleep, or run in shared libraries, which --lib traces")
	must(t, cmd.Process.Signal(unix.SIGSTOP))
	check(fmt.Sprintf("it is stopped: kill -CONT %d lets it go on, or the debugger that has it",
		cmd.Process.Pid))
}

// A process that is slowed down too much is left alone.
func TestMaxSlowDown(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "1.01", "-o", "x.wpp")
	w.expect("recording process")
	if _, err := fmt.Fprintln(s.In, 1<<40); err != nil {
		// it never answers: the test's end is its end
		t.Fatal(err)
	}
	w.expect("more than --max-slowdown 1.01: detached")
	w.wait(0)
	s.IsClean()
	checkRecording(t, w, "x.wpp", 1000)
	endedOn(t, w, "x.wpp", record.SlowDown)
}

// A second signal ends wpptrace at once, whatever it does; no file is left half-written.
func TestSecondSignal(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "-o", "x.wpp")
	w.expect("recording process")
	s.Ask(200)
	w.signal(os.Interrupt)
	w.signal(unix.SIGTERM)
	for w.lines.Scan() {
		fmt.Fprintln(&w.errs, w.lines.Text())
	}
	w.cmd.Wait()
	for _, name := range w.files() {
		if name != "x.wpp" {
			t.Errorf("%s is left", name)
		}
	}
	s.IsClean()
	s.End()
}

// When wpptrace is killed, the kernel takes the probes out.
func TestKilled(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "-o", "x.wpp")
	w.expect("recording process")
	s.Ask(20)
	w.signal(os.Kill)
	w.cmd.Wait()
	if names := w.files(); len(names) > 0 {
		t.Errorf("files: %q", names)
	}
	s.Ask(20) // the dying process's links are closed by then, or while this is answered
	s.BecomesClean()
	s.End()
}

// A command that is interrupted goes on untraced, and its status is returned.
func TestInterruptCommand(t *testing.T) {
	interruptReader(t, 9, "wpptrace", "-o", "x.wpp", "--", "bash", "-c",
		`trap "" INT; read -r x <"$0"; echo "got $x"; exit 9`)
}

// In the background of a script SIGINT is ignored: a command goes on to ignore it, and wpptrace
// takes it.
func TestInterruptInTheBackground(t *testing.T) {
	interruptReader(t, 0, "sh", "-c", `trap "" INT; exec wpptrace "$@"`, "sh", "-o", "x.wpp", "--",
		"bash", "-c", `read -r x <"$0"; kill -INT $$; echo "got $x"`)
}

// interruptReader interrupts the recording of a command that waits for a line from a FIFO, its last
// argument, and that ends with status when it has come.
func interruptReader(t *testing.T, status int, argv ...string) {
	t.Helper()
	dir := t.TempDir()
	fifo := dir + "/fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], append(argv[1:], fifo)...)
	cmd.Dir = dir
	w := runTracer(t, cmd)
	w.expect("recording process")
	w.signal(os.Interrupt)
	w.expect("lost: 0 events")
	if err := os.WriteFile(fifo, []byte("hello\n"), 0); err != nil {
		t.Fatal(err)
	}
	w.wait(status)
	if got := w.stdout.String(); got != "got hello\n" {
		t.Errorf("output %q", got)
	}
}

// Two recordings of one process do not get into each other's way: the second is refused.
func TestTwice(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "--max-slowdown", "0", "-o", "x.wpp")
	w.expect("recording process")
	second := startTracer(t, "-p", strconv.Itoa(s.PID()))
	second.expect("a breakpoint stands there already")
	second.wait(1)
	out, _, status := wpptrace("check", "-p", strconv.Itoa(s.PID()))
	if status != 1 || !strings.Contains(out, "a breakpoint stands there already") {
		t.Errorf("check: status %d, %s", status, out)
	}
	w.signal(os.Interrupt)
	w.wait(0)
	s.IsClean()
	s.End()
}

// Processes that end at any moment of attaching give one clear line, or a recording.
func TestTargetDiesWhileAttaching(t *testing.T) {
	for i := range 25 {
		cmd := exec.Command("sleep", fmt.Sprintf("0.%03d", i*5))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- cmd.Wait() }()
		path := t.TempDir() + "/x.wpp"
		_, errs, status := wpptrace("-q", "-p", strconv.Itoa(cmd.Process.Pid), "-o", path)
		if err := <-done; err != nil {
			t.Errorf("sleep: %v", err)
		}
		switch {
		case status == 0 && errs == "":
			if _, err := store.ReadFile(path); err != nil {
				t.Error(err)
			}
		case status == 1 && strings.Count(errs, "\n") == 1 &&
			(strings.HasSuffix(errs, "it has exited\n") ||
				strings.Contains(errs, "no such process")):
		default:
			t.Errorf("status %d: %s", status, errs)
		}
	}
}

// A process that calls exec while it is being attached to, even one of the same program, gives one
// clear line.
func TestExecWhileAttaching(t *testing.T) {
	for _, next := range []string{"sleep 1000", "bash -c 'while read -r x; do :; done'"} {
		cmd := exec.Command("bash", "-c", "read -r x; exec "+next)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		p, err := target.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		before := p.Command()
		o := record.Options{Process: p, Output: t.TempDir() + "/x.wpp"}
		_, err = record.Run(t.Context(), o, func(record.Event) {
			// some come just before the probes go in
			fmt.Fprintln(in)
			testenv.Eventually(t, func() bool { return !slices.Equal(p.Command(), before) },
				"it has called exec")
		})
		if err == nil || !strings.HasSuffix(err.Error(),
			"(bash): it has called exec meanwhile: try again") {
			t.Errorf("exec %s: %v", next, err)
		}
	}
}

// A signal that comes before the recording has begun ends it: nothing is recorded then, and
// nothing left.
func TestInterruptedBeforeItBegins(t *testing.T) {
	s := testenv.StartServer(t)
	w := startTracer(t, "-p", strconv.Itoa(s.PID()), "-o", "x.wpp", "--max-slowdown", "0")
	w.expect("routines, ") // it has planned, and goes on to attach
	w.signal(os.Interrupt)
	w.wait(1)
	w.hasRecordedNothing()
	s.IsClean()
	s.End()
}

// That a command has not run is printed.
func TestCommandInterruptedBeforeItBegins(t *testing.T) {
	// the library's line comes first, and its probes take long to put in
	w := startTracer(t, "--lib", "libc.*", "-o", "x.wpp", "--", "bash", "-c", "echo ran")
	w.expect("routines, ")
	w.signal(os.Interrupt)
	w.wait(1)
	if printed, out := w.errs.String(), w.stdout.String(); !strings.HasSuffix(printed,
		": nothing was recorded, and the command has not run\n") || out != "" {
		t.Errorf("it said %s, and the command %q", printed, out)
	}
}

// TestOutlast: a command goes on when its recording is over; wpptrace says that it waits, and a
// signal ends it, not the command. It could not be ended.
func TestOutlast(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"after a time", []string{"-d", "100ms"}},
		{"after a signal", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command("wpptrace",
				append(c.flags, "-o", "x.wpp", "--", "sh", "-c", "echo ready >&2; read line")...)
			cmd.Dir = t.TempDir()
			if _, err := cmd.StdinPipe(); err != nil { // what the command waits for
				t.Fatal(err)
			}
			w := runTracer(t, cmd)
			if c.flags == nil {
				w.expect("ready")
				w.signal(unix.SIGTERM)
			}
			w.expect("goes on, untraced")
			var pid int
			if _, err := fmt.Sscanf(lastLine(w.errs.String()), "wpptrace: process %d",
				&pid); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * interrupts.SameWish)
			w.signal(unix.SIGTERM)
			w.expect("interrupted: it goes on")
			if state := stateOf(t, pid); state != 'S' {
				t.Errorf("the command is in state %c", state)
			}
			must(t, unix.Kill(pid, unix.SIGKILL))
			w.wait(1)
			checkRecording(t, w, "x.wpp", 1)
		})
	}
}

// TestOutlastForBoth: a signal for wpptrace and its command, as a terminal's is, ends the command,
// and that is the status.
func TestOutlastForBoth(t *testing.T) {
	cmd := exec.Command("wpptrace", "-o", "x.wpp", "-d", "100ms", "--", "sleep", "1000")
	cmd.Dir, cmd.SysProcAttr = t.TempDir(), &syscall.SysProcAttr{Setpgid: true}
	w := runTracer(t, cmd)
	w.expect("goes on, untraced")
	must(t, unix.Kill(-cmd.Process.Pid, unix.SIGTERM))
	w.wait(128 + int(unix.SIGTERM))
}

// lastLine is that of a text that ends with a line.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}
