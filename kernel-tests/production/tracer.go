package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/query"
)

// A stamped line is one that wpptrace has printed, and when.
type stamped struct {
	at      time.Duration // since the command
	answers uint64        // that the load had had then
	text    string
}

// A tracing is what one wpptrace -p has done.
type tracing struct {
	lines []stamped // on stderr
	out   []byte    // stdout: the report
	took  time.Duration
	exit  int // its status; -1: a signal has killed it: for lack of memory, or of patience
	peak  uint64
	// nil where it has written none
	snapshot *wpp.Snapshot
	bytes    int64
}

// patience is how much longer than it was asked to wpptrace may take.
const patience = 90 * time.Second

// trace runs wpptrace on a process. flags are further ones, answers those of the load so far; began
// is called once the recording has begun.
func trace(ctx context.Context, o *options, flags []string, pid int, dir string,
	answers func() uint64, began func()) (*tracing, error) {
	out := dir + "/record.wpp"
	_ = os.Remove(out)
	args := inGroup(o.group, append([]string{o.tracer, "-p", strconv.Itoa(pid), "-d",
		o.duration().String(), "-o", out}, slices.Concat(o.flags, flags)...)...)
	cmd := exec.Command(args[0], args[1:]...)
	// as if it had been typed: what it reads must not be what this one's stdin is
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var report bytes.Buffer
	cmd.Stdout = &report
	errs, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	t := &tracing{}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.tracer, err)
	}
	over := make(chan struct{})
	ends := make(chan struct{})
	go func() {
		defer close(ends)
		t.peak = watch(ctx, cmd.Process, over, o.duration()+patience)
	}()
	for in := bufio.NewScanner(errs); in.Scan(); {
		line := stamped{time.Since(start), answers(), in.Text()}
		t.lines = append(t.lines, line)
		if isBegin(line.text) && began != nil {
			began()
		}
	}
	err = cmd.Wait()
	t.took = time.Since(start)
	close(over)
	<-ends
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	t.out = report.Bytes()
	t.exit = cmd.ProcessState.ExitCode()
	if info, err := os.Stat(out); err == nil {
		t.bytes = info.Size()
		t.snapshot, err = store.ReadFile(out, query.Sections()...)
		if err != nil {
			return nil, err
		}
	}
	return t, ctx.Err()
}

// watch ends wpptrace where it does not end by itself, and returns how many bytes of memory it has
// had at most. The processes that it starts are small.
func watch(ctx context.Context, p *os.Process, over <-chan struct{}, limit time.Duration) (
	peak uint64) {
	timeout, canceled := time.After(limit), ctx.Done()
	var kill <-chan time.Time
	for {
		select {
		case <-over:
			return peak
		case <-timeout:
			_ = p.Signal(syscall.SIGINT)
			kill = time.After(patience)
		case <-canceled:
			_ = p.Signal(syscall.SIGINT)
			canceled, kill = nil, time.After(patience)
		case <-kill:
			_ = p.Kill()
		case <-time.After(20 * time.Millisecond):
			peak = max(peak, residentPeak(p.Pid))
		}
	}
}

// residentPeak is how many bytes of memory a process has had at most; 0: it has ended.
func residentPeak(pid int) uint64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// used is how much CPU time a process has used.
func used(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseUint(f[11], 10, 64)
	kernel, _ := strconv.ParseUint(f[12], 10, 64)
	const tick = 10 * time.Millisecond // USER_HZ, on every x86
	return time.Duration(user+kernel) * tick
}

func isBegin(line string) bool { return strings.HasPrefix(line, "wpptrace: recording process ") }

func isEnd(line string) bool {
	return strings.HasPrefix(line, "wpptrace: ") && strings.Contains(line, " are over: tracing of ")
}

// recording is the first window's time since the command, and how many answers there were during
// the recording; ok: it has begun.
func (t *tracing) recording() (first time.Duration, answers uint64, ok bool) {
	for _, l := range t.lines {
		if isBegin(l.text) {
			first, answers, ok = l.at, l.answers, true
		}
	}
	for _, l := range t.lines {
		if ok && isEnd(l.text) {
			return first, l.answers - answers, true
		}
	}
	return first, 0, ok
}

// took is "tracing took 5.1% more".
var tookMore = regexp.MustCompile(`; tracing took (\S+)% more`)

// overhead is what tracing has taken by wpptrace's own account, as a share of the process's own CPU
// time; ok: it has printed one.
func (t *tracing) overhead() (share float64, ok bool) {
	for _, l := range t.lines {
		if m := tookMore.FindStringSubmatch(l.text); m != nil {
			percent, err := strconv.ParseFloat(m[1], 64)
			return percent / 100, err == nil
		}
	}
	return 0, false
}

// messages are the lines that it has printed.
func (t *tracing) messages() (list []string) {
	for _, l := range t.lines {
		list = append(list, l.text)
	}
	return list
}
