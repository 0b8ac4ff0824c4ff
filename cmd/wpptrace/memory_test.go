package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"wpptrace/internal/memory"
	"wpptrace/loader/attach"
)

// What is not given is made to fit into what the control group allows.
func TestFitMemory(t *testing.T) {
	const large = 64 << 30
	for _, c := range []struct {
		allowed      memory.Size
		given        map[string]bool
		memory, ring memory.Size // that it leaves of 1G and 64M
		fails        bool
	}{
		{0, nil, 1 << 30, 64 << 20, false},
		{large, nil, 1 << 30, 64 << 20, false},
		{2 << 30, nil, 512 << 20, 64 << 20, false},
		{1000 << 20, nil, 250 << 20, 32 << 20, false},
		{64 << 20, nil, 16 << 20, 4 << 20, false},
		{63 << 20, nil, 1 << 30, 64 << 20, true},
		{64 << 20, map[string]bool{"memory": true}, 1 << 30, 4 << 20, false},
		{64 << 20, map[string]bool{"ring-size": true}, 16 << 20, 64 << 20, false},
		{64 << 20, map[string]bool{"memory": true, "ring-size": true}, 1 << 30, 64 << 20, false},
		{63 << 20, map[string]bool{"memory": true}, 1 << 30, 2 << 20, false},
	} {
		o := recordFlags{ring: attach.DefaultRing, memory: defaultMemory()}
		err := o.fitMemory(c.allowed, func(flag string) bool { return c.given[flag] })
		if o.memory.all != c.memory || o.ring != c.ring {
			t.Errorf("%v, given %v: %v, ring %v", c.allowed, c.given, o.memory.all, o.ring)
		}
		if (err != nil) != c.fails || c.fails && !strings.HasSuffix(err.Error(),
			": have it allow 64M or more") {
			t.Errorf("%v, given %v: %v", c.allowed, c.given, err)
		}
	}
}

// Compressing takes all that is allowed: nothing else runs meanwhile.
func TestFitMemoryOfCompress(t *testing.T) {
	for _, c := range []struct {
		allowed memory.Size
		given   bool
		want    memory.Size // 0: an error
	}{{0, false, 1 << 30}, {1 << 40, false, 1 << 30}, {100 << 20, false, 100 << 20},
		{64 << 20, false, 64 << 20}, {63 << 20, false, 0}, {63 << 20, true, 1 << 30}} {
		m := defaultMemory()
		err := m.fit(c.allowed, 1, func(string) bool { return c.given })
		if (err == nil) != (c.want > 0) || err == nil && m.all != c.want {
			t.Errorf("%v, given %v: %v, %v", c.allowed, c.given, m.all, err)
		}
	}
}

// writeRandom writes bare symbols that hardly repeat themselves.
func writeRandom(t *testing.T, symbols, alphabet int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "random.u32")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for range symbols {
		w.Write(binary.LittleEndian.AppendUint32(w.AvailableBuffer(),
			random.Uint32N(uint32(alphabet))))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeSymbols writes bare symbols.
func writeSymbols(t *testing.T, symbols []uint32) (path string) {
	t.Helper()
	b := make([]byte, 0, 4*len(symbols))
	for _, sym := range symbols {
		b = binary.LittleEndian.AppendUint32(b, sym)
	}
	path = filepath.Join(t.TempDir(), "symbols.u32")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is no grammar counts too: an alphabet, which may be as large as the trace, and what runs
// that share nothing are made of.
func TestAlphabetAndRunsKeepToTheMemory(t *testing.T) {
	var distinct, runs []uint32
	for sym := range uint32(250_000) {
		distinct = append(distinct, sym, sym/2, sym/3)
		runs = append(runs, slices.Repeat([]uint32{sym % 50_000}, 3+int(sym/50_000))...)
	}
	for name, symbols := range map[string][]uint32{"alphabet": distinct, "runs": runs} {
		t.Run(name, func(t *testing.T) {
			file, snapshot := writeSymbols(t, symbols), filepath.Join(t.TempDir(), "x.wpp")
			if peak, _ := spend(t, "", "compress", "--symbols", "--memory", "128M", file, "-o",
				snapshot); peak > 128<<20 {
				t.Errorf("it took %d bytes", peak)
			}
			spend(t, file, "dump", "--as", "symbols", snapshot)
		})
	}
	_, errs, status := wpptrace("compress", "--symbols", "--memory", "64M",
		writeSymbols(t, distinct), "-o", filepath.Join(t.TempDir(), "x.wpp"))
	if status != exitError || !strings.Contains(errs,
		"of memory: what was met of the program and") || !strings.Contains(errs,
		"allow more memory") {
		t.Errorf("an alphabet beyond all memory: status %d: %s", status, errs)
	}
}

// peakFile is the variable that names the file to which mainMeasured writes the most memory that
// was resident.
const peakFile = "WPPTRACE_TEST_PEAK"

// mainMeasured is wpptrace, but that it reports what memory it took. What the system reports of a
// process that has ended includes what its parent had when it began.
func mainMeasured() {
	status := run(os.Args[1:], os.Stdout, os.Stderr)
	b, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, b, _ = bytes.Cut(b, []byte("VmHWM:"))
		err = os.WriteFile(os.Getenv(peakFile), bytes.Fields(b)[0], 0o600)
	}
	if err != nil {
		panic(err)
	}
	os.Exit(status)
}

// spend runs wpptrace in a process of its own, and returns the most memory that it had and the time
// that it took on a processor. What it prints must be what is in a file, if one is named.
func spend(t *testing.T, prints string, args ...string) (peak memory.Size, used time.Duration) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "peak")
	c := exec.Command("wpptrace-measured", args...)
	c.Env = append(os.Environ(), peakFile+"="+file)
	var errs bytes.Buffer
	c.Stderr = &errs
	if prints != "" {
		compare := exec.Command("cmp", "-", prints)
		pipe, err := compare.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout = pipe
		if err := compare.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(pipe.Close(), compare.Wait()); err != nil {
				t.Errorf("%s does not print what is in %s: %v", strings.Join(args, " "), prints,
					err)
			}
		}()
	}
	err := c.Run()
	if status := c.ProcessState.ExitCode(); status != 0 && status != exitBroke {
		t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kib, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	used = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	t.Logf("%s: %d MiB, %v", strings.Join(args, " "), kib>>10, used)
	return memory.Size(kib) << 10, used
}

// What does not fit into the memory that compressing may take goes to the file, and comes back.
func TestCompressKeepsToItsMemory(t *testing.T) {
	random, snapshot := writeRandom(t, 3<<20, 1<<16), filepath.Join(t.TempDir(), "x.wpp")
	if peak, _ := spend(t, "", "compress", "--symbols", "--memory", "64M", random, "-o",
		snapshot); peak > 64<<20 {
		t.Errorf("it took %d bytes", peak)
	}
	spend(t, random, "dump", "--as", "symbols", snapshot)
	// The file as it was when a recording was killed, say: its whole segments are read.
	whole, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(snapshot, whole[:len(whole)*3/4], 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, status := wpptrace("dump", "--as", "symbols", snapshot)
	all, err := os.ReadFile(random)
	if err != nil {
		t.Fatal(err)
	}
	if status != exitError || len(out) < len(all)/4 || !bytes.HasPrefix(all, []byte(out)) {
		t.Errorf("status %d, %d bytes of %d, or others", status, len(out), len(all))
	}
	if !strings.HasPrefix(errs, "wpptrace: snapshot "+snapshot+" is truncated ") ||
		strings.Count(errs, "\n") != 1 {
		t.Errorf("printed %q", errs)
	}
}

// 200 million symbols that hardly repeat themselves are compressed in 256 MiB, and each question
// about them is answered in 512 MiB and a minute. It takes two gigabytes of disk and some ten
// minutes.
func TestSoakMemory(t *testing.T) {
	if os.Getenv("WPPTRACE_SOAK") == "" {
		t.Skip("WPPTRACE_SOAK is not set: see make soak")
	}
	for name, alphabet := range map[string]int{"of 65536": 1 << 16, "of a million": 1_000_000} {
		t.Run(name, func(t *testing.T) {
			random, snapshot := writeRandom(t, 200_000_000, alphabet), filepath.Join(t.TempDir(),
				"x.wpp")
			if peak, _ := spend(t, "", "compress", "--symbols", "--memory", "256M", random, "-o",
				snapshot); peak > 256<<20 {
				t.Errorf("compressing took %d bytes", peak)
			}
			ask := func(prints string, args ...string) {
				peak, used := spend(t, prints, append(args, snapshot)...)
				if peak > 512<<20 || used > time.Minute {
					t.Errorf("%s took %d bytes and %v", args[0], peak, used)
				}
			}
			ask(random, "dump", "--as", "symbols")
			for _, question := range [][]string{
				{"hot"}, {"hot", "--maximal"}, {"hot", "--larus"}, {"hot", "-l", "2", "-L", "2",
					"-C", "1000"}, {"hot", "-l", "1", "-L", "1", "-C", "1", "--top", "5"},
				{"find", "symbols#5"}, {"find", "--gap", "5", "symbols#5 ** symbols#7"},
				{"order", "symbols#5", "symbols#7"}, {"context", "-k", "2", "symbols#5"},
				{"rules", "symbols#5 before symbols#7", "never symbols#5 symbols#7",
					"symbols#5 and symbols#7 balanced"}, {"path", "symbols#5"},
				{"stat"}, {"stat", "--csv", "figure8"}, {"stat", "--csv", "figure9"},
				{"dump", "--from", "150000000", "--to", "150000009"}, {"dump", "--from",
					"150000000", "--to", "150000009", "--reverse"}, {"compact"},
			} {
				ask("", question...)
			}
		})
	}
}
