package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/query"
)

// randomPaths is a program whose paths cannot be compressed: which path of step is next says a byte
// of a random sequence. It takes so many steps, or never ends.
const randomPaths = `
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t sink;
__attribute__((noinline)) static void step(uint64_t r)
{
	if (r & 1) sink += r; else sink ^= r;
	if (r & 2) sink += 3; else sink ^= 5;
	if (r & 4) sink *= 3; else sink ^= 7;
	if (r & 8) sink *= 7; else sink ^= 9;
	if (r & 16) sink *= 5; else sink -= 9;
	if (r & 32) sink *= 9; else sink -= 11;
	if (r & 64) sink *= 11; else sink -= 13;
	if (r & 128) sink *= 13; else sink -= 17;
}
int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], 0, 0) : UINT64_MAX, x = 88172645463325252;
	while (n--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		step(x);
	}
	return 0;
}`

func compileRandomPaths(t *testing.T) (program string) {
	return testenv.CompileC(t, randomPaths, "-O1", "-fno-if-conversion", "-fno-if-conversion2",
		"-fno-tree-loop-if-convert")
}

// seldom never ends either. It sleeps now and then, so that its events can be taken as they come,
// and is dear enough for windows.
const seldom = `
#include <unistd.h>
static volatile int sink;
__attribute__((noinline)) static void work(int n)
{
	while (n--)
		sink += n % 3 ? n : 1;
}
int main(void)
{
	for (;;) {
		work(100);
		usleep(50);
	}
}`

// A sequence is the one of that program: its state.
type sequence uint64

const beginning sequence = 88172645463325252

func (s *sequence) next() byte {
	*s ^= *s << 13
	*s ^= *s >> 7
	*s ^= *s << 17
	return byte(*s)
}

// goesOn says whether these bytes are next, and takes them if so.
func (s *sequence) goesOn(with []byte) bool {
	at := *s
	for _, b := range with {
		if at.next() != b {
			return false
		}
	}
	*s = at
	return true
}

// find looks for these bytes, before which there may be so many others, and takes all of them.
func (s *sequence) find(bytes []byte, most uint64) (skipped uint64, ok bool) {
	for at := *s; skipped <= most; skipped++ {
		if at.goesOn(bytes) {
			*s = at
			return skipped, true
		}
		at.next()
	}
	return 0, false
}

// dumpSteps calls back for each whole path of step that a snapshot has, in order, and for the
// number of events of each gap.
func dumpSteps(t *testing.T, snapshot string, path func(number string), gap func(events uint64)) {
	t.Helper()
	dump := exec.Command("wpptrace", "dump", snapshot)
	dump.Stderr = os.Stderr
	pipe, err := dump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := dump.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { dump.Process.Kill(); dump.Wait() }()
	lines := bufio.NewScanner(pipe)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "#gap "); ok {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			gap(n)
		}
		if f := strings.Split(lines.Text(), "\t"); len(f) == 6 && f[1] == "step" &&
			f[3] == "entry" && f[4] == "return" {
			path(f[2])
		}
	}
	if err := errors.Join(lines.Err(), dump.Wait()); err != nil {
		t.Fatal(err)
	}
}

// learnSteps records the program from its start and returns the byte that each path of step stands
// for. That there is such a byte proves the recording.
func learnSteps(t *testing.T, program string) map[string]byte {
	t.Helper()
	const steps = 20_000
	w := startTracer(t, "-q", "-o", "y.wpp", "--", program, strconv.Itoa(steps))
	w.wait(0)
	s, n := beginning, 0
	bytes, paths := map[string]byte{}, map[byte]string{}
	dumpSteps(t, w.path("y.wpp"), func(number string) {
		n++
		b := s.next()
		if was, ok := bytes[number]; ok && was != b {
			t.Fatalf("step %d: path %s is that of %d, and was that of %d", n, number, b, was)
		}
		if was, ok := paths[b]; ok && was != number {
			t.Fatalf("step %d: the path of %d is %s, and was %s", n, b, number, was)
		}
		bytes[number], paths[b] = b, number
	}, func(events uint64) { t.Errorf("%d events were lost", events) })
	if n != steps || len(bytes) != 256 {
		t.Fatalf("%d steps of %d, %d paths of 256", n, steps, len(bytes))
	}
	return bytes
}

// A trail is the recorded steps, followed through the sequence.
type trail struct {
	t  *testing.T
	at sequence
	// steps that may be missing before those that are not found yet; 0: none, and none are
	may    uint64
	few    []byte // that are not found yet
	steps  int
	missed uint64
	gaps   int
	lost   uint64
}

// enough steps are found in one place only.
const enough = 16

func (f *trail) step(b byte) {
	f.steps++
	switch {
	case f.may == 0:
		if want := f.at.next(); b != want {
			f.t.Fatalf("step %d is %d, not %d, and no gap is there", f.steps, b, want)
		}
	case len(f.few) < enough-1:
		f.few = append(f.few, b)
	default:
		if skipped := f.find(&f.at, append(f.few, b)); f.gaps > 0 {
			// before the first, it was not traced yet
			f.missed += skipped
		}
		f.may, f.few = 0, nil
	}
}

// gap says that events are missing, of which each step makes one or more, and parts of two steps
// besides.
func (f *trail) gap(events uint64) {
	f.gaps++
	f.lost += events
	f.rest()
	f.may += events + 2
}

// rest takes what came to its end before its place was known, which could be in several.
func (f *trail) rest() {
	at := f.at
	f.find(&at, f.few)
	f.may += uint64(len(f.few))
	f.few = nil
}

func (f *trail) find(s *sequence, bytes []byte) (skipped uint64) {
	skipped, ok := s.find(bytes, f.may)
	if !ok {
		f.t.Fatalf("the steps before step %d, %d, are not among the next %d", f.steps, bytes, f.may)
	}
	return skipped
}

// followSteps compares the snapshot's steps with the sequence: they are a part of it but for gaps,
// which are all in the figures.
func followSteps(t *testing.T, snapshot string, bytes map[string]byte) {
	t.Helper()
	s, err := store.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	const before = 1 << 34 // steps that the program can have taken until it was traced, in minutes
	f := &trail{t: t, at: beginning, may: before}
	dumpSteps(t, snapshot, func(number string) {
		b, ok := bytes[number]
		if !ok {
			t.Fatalf("step %d: nobody knows path %s", f.steps, number)
		}
		f.step(b)
	}, f.gap)
	f.rest()
	stat, err := query.NewStat(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d steps of %d paths, %d are missing in %d gaps of %d events", f.steps, stat.Paths,
		f.missed, f.gaps, f.lost)
	if g := s.Figures; g.Gaps != uint64(f.gaps) || g.Lost != f.lost || g.Anomalies != 0 {
		t.Errorf("the figures have %d lost in %d gaps, the stream %d in %d; %d anomalies", g.Lost,
			g.Gaps, f.lost, f.gaps, g.Anomalies)
	}
	if f.gaps == 0 || f.steps < 100_000 {
		t.Error("the test does not test")
	}
}
