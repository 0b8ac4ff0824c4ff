package main

import (
	"bufio"
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/profile"
)

// A companion is another tool that looks at the same process at the same time.
type companion struct {
	cmd  *exec.Cmd
	errs bytes.Buffer
}

func (w *companion) start(out io.Writer, name string, args ...string) error {
	w.cmd = exec.Command(name, args...)
	w.cmd.Stdout, w.cmd.Stderr = out, &w.errs
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	return nil
}

// stop interrupts it and waits until it has ended. How is no matter: some report the signal.
func (w *companion) stop() error {
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return fmt.Errorf("end %s: %w: %s", w.cmd.Path, err, &w.errs)
	}
	end := time.AfterFunc(time.Minute, func() { _ = w.cmd.Process.Kill() })
	defer end.Stop()
	_ = w.cmd.Wait()
	return nil
}

// A perf is a perf record.
type perf struct {
	companion
	file string
}

// startPerf samples a process. Its rate is none that the kernel's timers have, too.
func startPerf(pid int, file string) (*perf, error) {
	p := &perf{file: file}
	return p, p.start(nil, "perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-o", file, "-p",
		strconv.Itoa(pid))
}

// samples ends perf and returns the addresses.
func (p *perf) samples() ([]uint64, error) {
	if err := p.stop(); err != nil {
		return nil, err
	}
	out, err := exec.Command("perf", "script", "-i", p.file, "-F", "ip").Output()
	if err != nil {
		return nil, fmt.Errorf("perf script: %w: %s", err, &p.errs)
	}
	return readSamples(bytes.NewReader(out))
}

// A counted routine is one whose entries bpftrace counts.
type counted struct {
	routine int // index in Snapshot.Routines
	path    string
	addr    uint64 // link-time, of an instruction that a breakpoint slows down little
}

// chooseCounted chooses the ten routines that take the most time of those that are entered less
// than mostEntries times a second each, whose entries are cheap to count.
func chooseCounted(s *wpp.Snapshot, maps []mapping) ([]counted, error) {
	const many, mostEntries = 10, 30_000
	flat, err := profile.Flat(s)
	if err != nil {
		return nil, err
	}
	paths := imagePaths(s, maps)
	var list []counted
	for i := range flat.Routines {
		r := flat.Routines[i].Routine
		if r == profile.NoRoutine {
			continue
		}
		routine := &s.Routines[r]
		entries := 0.0 // of a number that is not known now none would be known the next time
		if all := calls(s, &flat.Routines[i]); all != nil {
			entries = all.Value
		}
		if entries == 0 || entries/s.Figures.Duration.Seconds() > mostEntries {
			continue
		}
		path := paths[routine.Image]
		if addr, ok := cheapEntry(path, routine.Entry); ok {
			list = append(list, counted{r, path, addr})
		}
		if len(list) == many {
			break
		}
	}
	return list, nil
}

// cheapEntry is the address of the push that a routine begins with, if it does: no branch leads
// behind an endbr64, but to it.
func cheapEntry(path string, entry uint64) (uint64, bool) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	code := make([]byte, 6)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && entry-p.Vaddr < p.Filesz {
			if _, err := p.ReadAt(code, int64(entry-p.Vaddr)); err != nil {
				return 0, false
			}
		}
	}
	if rest, ok := bytes.CutPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}); ok {
		code, entry = rest, entry+4
	}
	isPush := func(b byte) bool { return b>>3 == 0x50>>3 }
	return entry, isPush(code[0]) || code[0] == 0x41 && isPush(code[1])
}

// A bpftrace counts entries once a second.
type bpftrace struct {
	companion
	done sync.WaitGroup
	mu   sync.Mutex
	list []entryCounts
	err  error
}

// entryCounts are what bpftrace has counted so far, by the number of the routine in its script, and
// how many answers the load had had then.
type entryCounts struct {
	counts  map[string]uint64
	answers uint64
}

// script is what bpftrace runs. It has no filter of its own, which would let one thread pass. At
// its end nothing is printed: that would come when its probes have been out for long.
func script(pid int, list []counted) string {
	var b strings.Builder
	for i, c := range list {
		fmt.Fprintf(&b, "uprobe:%s:0x%x /pid == %d/ { @[%d] = count(); }\n", c.path, c.addr, pid, i)
	}
	b.WriteString("interval:s:1 { print(@); }\nEND { clear(@); }\n")
	return b.String()
}

// startBpftrace counts entries of a process. It takes a second or so until it does.
func startBpftrace(pid int, list []counted, answers func() uint64) (*bpftrace, error) {
	b := &bpftrace{}
	r, w := io.Pipe()
	// --unsafe: it does not know where instructions are in a stripped file
	if err := b.start(w, "bpftrace", "--unsafe", "-f", "json", "-B", "line", "-e",
		script(pid, list)); err != nil {
		return nil, err
	}
	b.done.Go(func() {
		list, err := readCounts(r, answers)
		b.mu.Lock()
		b.list, b.err = list, err
		b.mu.Unlock()
		_, _ = io.Copy(io.Discard, r)
	})
	b.done.Go(func() {
		_ = b.cmd.Wait()
		_ = w.Close()
	})
	return b, nil
}

// readCounts reads maps as bpftrace prints them in JSON.
func readCounts(r io.Reader, answers func() uint64) (list []entryCounts, err error) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		if len(in.Bytes()) == 0 {
			continue
		}
		var line struct {
			Type string
			Data json.RawMessage
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("read bpftrace's counts: %w: %q", err, in.Bytes())
		}
		if line.Type != "map" {
			continue
		}
		var data map[string]map[string]uint64
		if err := json.Unmarshal(line.Data, &data); err != nil {
			return nil, fmt.Errorf("read bpftrace's counts: %w: %q", err, in.Bytes())
		}
		list = append(list, entryCounts{data["@"], answers()})
	}
	return list, in.Err()
}

// perAnswer ends bpftrace and returns how often each routine was entered, by its number, for each
// answer of the load.
func (b *bpftrace) perAnswer() (map[int]float64, error) {
	_ = b.cmd.Process.Signal(syscall.SIGINT) // fails where it has ended, as errs says
	b.done.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return nil, b.err
	}
	list := settled(b.list)
	if len(list) < 2 {
		return nil, fmt.Errorf("bpftrace has counted for %d s: %w: %s", len(b.list), errShort,
			&b.errs)
	}
	return between(list[0], list[len(list)-1]), nil
}

// settled are counts from when all routines are counted: one after the other gets its probe.
func settled(list []entryCounts) []entryCounts {
	for i := range list {
		if len(list[i].counts) == len(list[len(list)-1].counts) {
			return list[min(i+1, len(list)-1):]
		}
	}
	return nil
}

var errShort = errors.New("too short to compare")

// between is how often each routine was entered for each answer from one moment to another.
func between(a, z entryCounts) map[int]float64 {
	rates := map[int]float64{}
	for key, n := range z.counts {
		if i, err := strconv.Atoi(key); err == nil && z.answers > a.answers {
			rates[i] = float64(n-a.counts[key]) / float64(z.answers-a.answers)
		}
	}
	return rates
}

// A routineCount compares how often a routine was entered for each answer.
type routineCount struct {
	Routine   string  `json:"routine"`
	Bpftrace  float64 `json:"bpftrace"`
	Estimated float64 `json:"wpptrace"` // 0: it is not known
	Least     float64 `json:"least"`    // of the interval that is printed
	Most      float64 `json:"most"`
}

// holds reports whether bpftrace's count is in the interval.
func (x *routineCount) holds() bool { return x.Least <= x.Bpftrace && x.Bpftrace <= x.Most }

// compareCounts compares bpftrace's counts with the estimates of a recording of so many answers, as
// far as there are any.
func compareCounts(s *wpp.Snapshot, before *wpp.Snapshot, chosen []counted, rates map[int]float64,
	answers uint64) (list []routineCount, err error) {
	if answers == 0 {
		return nil, nil
	}
	flat, err := profile.Flat(s)
	if err != nil {
		return nil, err
	}
	type place struct {
		image string
		entry uint64
	}
	known := map[place]*query.Total{} // routines may have other numbers in another recording
	for i := range flat.Routines {
		x := &flat.Routines[i]
		if x.Routine != profile.NoRoutine {
			r := &s.Routines[x.Routine]
			known[place{s.Images[r.Image].Name, r.Entry}] = calls(s, x)
		}
	}
	for i, c := range chosen {
		r := &before.Routines[c.routine]
		x := routineCount{Routine: r.Name, Bpftrace: rates[i]}
		if t := known[place{before.Images[r.Image].Name, r.Entry}]; t != nil {
			n := float64(answers)
			x.Estimated, x.Least, x.Most = t.Value/n, t.Least/n, t.Most/n
		}
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b routineCount) int {
		return cmp.Compare(b.Bpftrace, a.Bpftrace)
	})
	return list, nil
}

// calls is how often a routine was called in all; nil: that is not known.
func calls(s *wpp.Snapshot, x *profile.RoutineFigures) *query.Total {
	if s.Figures.IsSampled() {
		return x.CallsInAll
	}
	n := float64(x.Calls)
	return &query.Total{Value: n, Least: n, Most: n}
}

// estimated are those of which there is an estimate.
func estimated(list []routineCount) (known []routineCount) {
	for _, x := range list {
		if x.Estimated > 0 {
			known = append(known, x)
		}
	}
	return known
}

// held is how many intervals hold, and widest by which factor the widest of them is wide.
func held(list []routineCount) (n int, widest float64) {
	for _, x := range estimated(list) {
		if x.holds() {
			n++
		}
		widest = max(widest, ratio(x.Most, x.Least))
	}
	return n, widest
}
