package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/production/load"
)

// record is what a wpptrace -p prints.
var record = []stamped{
	{300 * time.Millisecond, 900, "wpptrace: 27 of 27 routines, 303 probes (4 single-stepped)"},
	{400 * time.Millisecond, 1000, "wpptrace: recording process 2383 (busy) to record.wpp"},
	{5400 * time.Millisecond, 6000, "wpptrace: 5s are over: tracing of process 2383 (busy) ended"},
	{5500 * time.Millisecond, 6100, "wpptrace: traced in 4 windows, at most 0.027% of its own CPU " +
		"time; tracing took 5.13% more, of 414 ms of CPU time"},
	{5500 * time.Millisecond, 6100, "lost: 0 events"},
}

func TestMessages(t *testing.T) {
	whole := &tracing{lines: record}
	first, answers, ok := whole.recording()
	if first != 400*time.Millisecond || answers != 5000 || !ok {
		t.Errorf("recorded from %v on, %d answers, %v", first, answers, ok)
	}
	if share, ok := whole.overhead(); share < 0.0512 || share > 0.0514 || !ok {
		t.Errorf("overhead %v, %v", share, ok)
	}
	refused := &tracing{lines: record[:1]}
	if _, _, ok := refused.recording(); ok {
		t.Error("a recording that has not begun has")
	}
	if _, ok := refused.overhead(); ok {
		t.Error("an overhead that was not printed was")
	}
	interrupted := &tracing{lines: record[:2]}
	if first, answers, ok := interrupted.recording(); first == 0 || answers != 0 || !ok {
		t.Errorf("recorded from %v on, %d answers, %v", first, answers, ok)
	}
}

func TestReadMaps(t *testing.T) {
	maps, err := readMaps(strings.NewReader(`5581c0000000-5581c0002000 r--p 00000000 fe:00 12 /bin/x
5581c0002000-5581c0010000 r-xp 00002000 fe:00 12                     /opt/my server/x (deleted)
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                      [vdso]
`))
	want := []mapping{
		{0x5581c0002000, 0x5581c0010000, 0x2000, "/opt/my server/x"},
		{0x7f0000000000, 0x7f0000001000, 0, ""},
		{0x7ffd00000000, 0x7ffd00002000, 0, "[vdso]"}}
	if err != nil || !reflect.DeepEqual(maps, want) {
		t.Errorf("%+v, %v", maps, err)
	}
	if _, err := readMaps(strings.NewReader("x-y r-xp 0 0 0\n")); err == nil {
		t.Error("no error")
	}
}

func TestReadSamples(t *testing.T) {
	list, err := readSamples(strings.NewReader("    5581c0002010 \n ffffffff81000000\n\n"))
	if want := []uint64{0x5581c0002010, 0xffffffff81000000}; err != nil ||
		!reflect.DeepEqual(list, want) {
		t.Errorf("%x, %v", list, err)
	}
	if _, err := readSamples(strings.NewReader("[unknown]\n")); err == nil {
		t.Error("no error")
	}
}

// snapshot is one of this test's own executable, in which a routine has run three paths of four
// instructions, and another one of eight; a third was left out.
func snapshot(t *testing.T) (s *wpp.Snapshot, exe string, base uint64) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	base = text.Addr
	g := sequitur.New()
	for _, symbol := range []uint32{0, 0, 1, 0} {
		g.Append(symbol)
	}
	block := func(addr uint64, n int) []wpp.Block {
		return []wpp.Block{{Addr: addr, Lengths: bytes.Repeat([]byte{4}, n)}}
	}
	return &wpp.Snapshot{
		Images: []wpp.Image{{Name: filepath.Base(exe)}},
		Routines: []wpp.Routine{
			{Name: "a", Entry: base, Ranges: []wpp.Range{{Lo: base, Hi: base + 16}}, Paths: 1,
				Blocks: block(base, 4)},
			{Name: "b", Entry: base + 32, Ranges: []wpp.Range{{Lo: base + 32, Hi: base + 64}},
				Paths: 1, Blocks: block(base+32, 8)},
			{Name: "c", Entry: base + 64, Ranges: []wpp.Range{{Lo: base + 64, Hi: base + 96}},
				LeftOut: "loop"},
		},
		Symbols: []wpp.Symbol{{Routine: 0, Blocks: []int{0}}, {Routine: 1, Blocks: []int{0}}},
		Threads: []wpp.Thread{{Grammar: wpp.FromSequitur(g)}},
		Figures: wpp.Figures{Duration: time.Second, Windows: 3, Sampled: 0.5},
	}, exe, base
}

// Samples are found where they are, whatever the address that the image was loaded at, and shares
// are those of traced code.
func TestShares(t *testing.T) {
	s, exe, base := snapshot(t)
	offset := offsetsOf(exe)(base)
	const loaded = 0x5581c0000000
	maps := []mapping{
		{loaded, loaded + 1<<20, offset &^ 0xfff, exe},
		{loaded + 2<<20, loaded + 3<<20, 0, ""},
		{loaded + 3<<20, loaded + 4<<20, offset &^ 0xfff, "/lib/libc.so.6"}}
	at := func(n uint64) uint64 { return loaded + offset&0xfff + n }
	p := locate([]uint64{at(0), at(15), at(32), at(63), // a, a, b, b
		at(16), at(64), // between routines, in one that was left out
		loaded + 2<<20, 1, // in no file
		at(3 << 20), firstOfKernel + 1}, maps, s)
	where := map[string]int{filepath.Base(exe): 6, "no file": 2, "libc.so.6": 1, "kernel": 1}
	if !reflect.DeepEqual(p.where, where) || p.samples != 10 ||
		!reflect.DeepEqual(p.routines, map[int]int{0: 2, 1: 2}) {
		t.Errorf("%+v", p)
	}
	list, worst, err := compareShares(p, s)
	want := []routineShare{{"a", 0.5, 0.6}, {"b", 0.5, 0.4}}
	if err != nil || !reflect.DeepEqual(list, want) || worst < 9.99 || worst > 10.01 {
		t.Errorf("%+v, %v, %v", list, worst, err)
	}
	// shares of the CPU time, where wpptrace has samples
	sampled := samples.Profile{Kernel: 10, Files: []samples.File{{Path: exe, Image: 0, Samples: 80,
		Routines: []samples.InRoutine{{Routine: 0, Samples: 30}, {Routine: 1, Samples: 20}}},
		{Path: "/lib/libc.so.6", Image: samples.NoImage, Samples: 5}},
		JIT: []samples.Memory{{Samples: 5}}}
	s.Sections = []*wpp.Section{sampled.Section()}
	list, worst, err = compareShares(p, s)
	want = []routineShare{{"a", 0.2, 0.3}, {"b", 0.2, 0.2}}
	if err != nil || !reflect.DeepEqual(list, want) || worst < 9.99 || worst > 10.01 {
		t.Errorf("%+v, %v, %v", list, worst, err)
	}
	seen, err := places(s)
	if want := map[string]float64{filepath.Base(exe): 0.8, "libc.so.6": 0.05, "no file": 0.05,
		"kernel": 0.1}; err != nil || !reflect.DeepEqual(seen, want) {
		t.Errorf("%v, %v", seen, err)
	}
	if none := locate([]uint64{at(0)}, maps, nil); len(none.routines) > 0 || none.samples != 1 {
		t.Errorf("%+v", none)
	}
}

// A subpath is found where another recording has it, or one that begins like it.
func TestTopFound(t *testing.T) {
	full, _, _ := snapshot(t)
	stream := func(symbols ...uint32) *wpp.Snapshot {
		s, g := *full, sequitur.New()
		for range 50 {
			for _, x := range symbols {
				g.Append(x)
			}
		}
		s.Threads = []wpp.Thread{{Grammar: wpp.FromSequitur(g)}}
		return &s
	}
	both := stream(0, 1)
	for _, c := range []struct {
		name  string
		other *wpp.Snapshot
		found int
	}{{"itself", both, 2}, {"one of them", stream(0, 0, 0, 0), 0}} {
		if found, of, err := topFound(both, c.other); found != c.found || of != 2 || err != nil {
			t.Errorf("%s: %d of %d, %v", c.name, found, of, err)
		}
	}
}

// Counts are compared by answer. Of a recording in windows of which no total is known, none is.
func TestCounts(t *testing.T) {
	s, exe, base := snapshot(t)
	s.Figures.Windows, s.Figures.Sampled = 0, 0
	chosen := []counted{{0, exe, base}, {1, exe, base + 32}}
	list, err := compareCounts(s, s, chosen, map[int]float64{0: 0.75, 1: 2}, 4)
	want := []routineCount{{"b", 2, 0.25, 0.25, 0.25}, {"a", 0.75, 0.75, 0.75, 0.75}} // 3, 1 / 4
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Errorf("%+v, %v", list, err)
	}
	if n, widest := held(list); n != 1 || widest != 1 {
		t.Errorf("%d hold, %v wide", n, widest)
	}
	s.Figures.Windows, s.Figures.Sampled, s.Figures.SampledMost = 1, 0.005, 0.01
	list, err = compareCounts(s, s, chosen, nil, 4)
	if n, _ := held(list); len(estimated(list)) != 0 || n != 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestReadCounts(t *testing.T) {
	answers := uint64(0)
	list, err := readCounts(strings.NewReader(
		`{"type": "attached_probes", "data": {"probes": 3}}
{"type": "map", "data": {"@": {"0": 54, "1": 10}}}

{"type": "map", "data": {"@": {"0": 154, "1": 10, "2": 50}}}
`), func() uint64 { answers += 100; return answers })
	want := []entryCounts{{map[string]uint64{"0": 54, "1": 10}, 100},
		{map[string]uint64{"0": 154, "1": 10, "2": 50}, 200}}
	if err != nil || !reflect.DeepEqual(list, want) {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := settled(append(list, list[1])); len(got) != 1 { // the last routine comes late
		t.Errorf("%+v", got)
	}
	if got := between(list[0], list[1]); !reflect.DeepEqual(got,
		map[int]float64{0: 1, 1: 0, 2: 0.5}) {
		t.Error(got)
	}
	if _, err := readCounts(strings.NewReader("Segmentation fault\n"), nil); err == nil {
		t.Error("no error")
	}
}

func TestScript(t *testing.T) {
	const want = "uprobe:/bin/x:0x40 /pid == 7/ { @[0] = count(); }\n" +
		"interval:s:1 { print(@); }\nEND { clear(@); }\n"
	if got := script(7, []counted{{3, "/bin/x", 0x40}}); got != want {
		t.Errorf("%q", got)
	}
}

// The table has a line for each server, with medians of the runs in which nothing else looked on.
func TestTable(t *testing.T) {
	of := func(server string, held, free time.Duration, answers uint64) *run {
		f := load.Figures{Answers: 1000, Duration: time.Second, Longest: free}
		return &run{Server: server, Before: f, Behind: f,
			Traced: load.Figures{Answers: answers, Duration: time.Second, Longest: held,
				HoldUpTime: held / 10 * 20},
			CPUUntraced: 1000, CPUTraced: 1050, Took: 12, FirstWindow: 1.5, PeakRSS: 300e6,
			Overhead: 0.05, Probes: 9, Windows: 7, Paths: 100, Messages: []string{"lost: 0"}}
	}
	const ms = time.Millisecond
	beside := of("redis", 900*ms, 100*ms, 10)
	beside.Beside, beside.SharesOff, beside.Shares = "perf", 2.5, []routineShare{{"a", 0.1, 0.2}}
	beside.Exit, beside.Where = 1, map[string]float64{"kernel": 0.7, "redis": 0.295, "x": 0.005}
	full := of("redis", 5*time.Second, 1*ms, 1)
	full.Beside, full.TopFound, full.Top = inFull, 7, 10
	refused := of("node", 2*ms, 1*ms, 1000)
	refused.Overhead, refused.FirstWindow = -1, 0
	runs := []*run{of("redis", 40*ms, 2*ms, 900), of("redis", 20*ms, 4*ms, 950),
		of("redis", 30*ms, 3*ms, 920), beside, full, refused}
	var out, details strings.Builder
	if err := writeTable(&out, runs); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	if want := "redis 3 1.5s 12.0s 9 7 100 5.0% +5.0% 30/60ms 3/0ms -8.0% 1.0k 300M 2.5 - 7/10 0,1"; lines[1] !=
		want {
		t.Errorf("%q, not %q", lines[1], want)
	}
	if want := "node 1 - 12.0s 9 7 100 - +5.0% 2/4ms 1/0ms +0.0% 1.0k 300M - - - 0"; lines[2] != want {
		t.Errorf("%q, not %q", lines[2], want)
	}
	path := filepath.Join(t.TempDir(), "runs.json")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		err = errors.Join(err, json.NewEncoder(f).Encode(r))
	}
	var again, missing strings.Builder
	err = errors.Join(err, f.Close(), printTable(path, &again), writeMissed(&missing, runs))
	if again.String() != out.String()+missing.String() || err != nil {
		t.Errorf("%s, %v", &again, err)
	}
	if err := writeDetails(&details, runs); err != nil {
		t.Fatal(err)
	}
	if text := details.String(); !strings.Contains(text, "perf: kernel 70%, redis 29.5%\n") {
		t.Error(text)
	}
}

// A goal is missed by the median of the runs that it is about, and by those servers that it is for.
func TestGoals(t *testing.T) {
	of := func(server string, change func(*run)) *run {
		r := &run{Server: server, FirstWindow: 1, Windows: 20, Paths: 200_000, Overhead: 0.05,
			Traced: load.Figures{Answers: 950, Duration: time.Second, Longest: time.Millisecond},
			Before: load.Figures{Answers: 1000, Duration: time.Second}}
		change(r)
		return r
	}
	good := func(*run) {}
	few := func(r *run) { r.Windows, r.Paths = 3, 60_000 }
	for _, c := range []struct {
		name string
		runs []*run
		want string
	}{
		{"none", []*run{of("redis", good)}, ""},
		{"for another server", []*run{of("nginx", few)}, ""},
		{"one of three", []*run{of("redis", few), of("redis", good), of("redis", good)}, ""},
		{"few", []*run{of("redis", few)}, "missed by redis: windows: 3, not 15 or more\n" +
			"missed by redis: paths: 6e+04, not 100000 or more\n"},
		{"fails", []*run{of("node", func(r *run) { r.Exit, r.FirstWindow, r.Took = 1, 0, 27 })},
			"missed by node: exit status: 1, not 0 or less\n" +
				"missed by node: first window: 27 s, not 2 or less\n"},
		{"not measured", []*run{of("rust", func(r *run) { r.Overhead = -1 })}, ""},
		{"held up", []*run{of("rust", func(r *run) { r.Traced.Longest = time.Second })},
			"missed by rust: hold-up above that without tracing: 1000 ms, not 30 or less\n"},
		{"beside", []*run{of("rust", func(r *run) {
			r.Beside, r.SharesOff, r.Shares = "perf", 14.3, make([]routineShare, 1)
		})},
			"missed by rust: shares beside perf's: 14.3 points, not 3 or less\n"},
	} {
		var out strings.Builder
		if err := writeMissed(&out, c.runs); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v", c.name, out.String(), err)
		}
	}
}

// A command in a group has its memory, and its arguments as they are.
func TestGroup(t *testing.T) {
	group, err := makeGroup(100)
	if err != nil {
		testenv.Missing(t, err)
	}
	defer func() {
		if err := os.Remove(group); err != nil {
			t.Error(err)
		}
	}()
	args := inGroup(group, "/bin/sh", "-c", `cat /proc/self/cgroup; echo "$0"`, "a  b")
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil || !strings.Contains(string(out), filepath.Base(group)+"\n") ||
		!strings.HasSuffix(string(out), "\na  b\n") {
		t.Errorf("%q, %v", out, err)
	}
	if got := inGroup("", "x", "y"); !reflect.DeepEqual(got, []string{"x", "y"}) {
		t.Error(got)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-servers", "redis,nginx", "-runs", "2", "-seconds", "3", "--", "--lib",
		"x"}, io.Discard)
	if err != nil || len(o.servers) != 2 || o.runs != 2 || o.duration() != 3*time.Second ||
		!reflect.DeepEqual(o.flags, []string{"--lib", "x"}) {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-servers", "apache"}, {"-seconds", "0"}, {"-runs", "-1"},
		{"-runs", "0", "-compare=false"}} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
