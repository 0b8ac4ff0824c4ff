package kerneltests

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/internal/testenv"
)

// heldUp is a main for cyclic routines that measures by its own clock how long it is held up: it
// looks at the clock each sixteen calls, and when these take 20 times as long as usual, or longer,
// it is. When it is told to end it prints how long each time was, in us, from half a millisecond
// on; those less than 2 ms apart are one.
const heldUp = `
#include <signal.h>
#include <stdio.h>
#include <time.h>
static volatile sig_atomic_t over;
static void end(int n) { over = 1; }
static long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}
static unsigned step(void)
{
	static unsigned at, x = 12345;
	for (int n = 0; n < 16; n++) {
		x = x * 1103515245 + 12345;
		all[order[at]](x >> 16 & 63);
		at = (at + 1) % sizeof(order);
	}
	return x;
}
int main(void)
{
	enum { TRIES = 20000, MOST = 10000 };
	static long took[MOST];
	long n = 0, began = now(), usual, last, begin = 0, end_ = 0;
	signal(SIGTERM, end);
	for (int i = 0; i < TRIES; i++)
		step();
	usual = (now() - began) / TRIES;
	puts("");
	fflush(stdout);
	for (last = now(); !over;) {
		step();
		long at = now();
		if (at - last > 20 * usual) {
			if (at - end_ > 2000000) {
				if (end_ - begin >= 500000 && n < MOST)
					took[n++] = end_ - begin;
				begin = last;
			}
			end_ = at;
		}
		last = at;
	}
	for (long i = 0; i < n; i++)
		printf("%ld\n", took[i] / 1000);
	return 0;
}
`

// BenchmarkStall records a program that computes without a pause, at the default budget, and
// reports how long each window has held it up by the program's own clock, with its probes that go
// in and come out: ms/window is the median, ms/longest the longest time of all, untraced-ms/longest
// that of a time without tracing.
func BenchmarkStall(b *testing.B) {
	code := cyclicRoutines(rand.New(rand.NewPCG(1, 2))) + heldUp
	path := testenv.CompileC(b, code, "-O2")
	for b.Loop() {
		untraced := stalls(b, path)
		traced := stalls(b, path, "--overhead", "5")
		if len(traced) == 0 {
			b.Fatal("no window has held it up")
		}
		// windows last for some ms; what is shorter is the scheduler's
		windows := slices.DeleteFunc(slices.Clone(traced),
			func(d time.Duration) bool { return d < 4*time.Millisecond })
		ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
		if len(windows) > 0 {
			b.ReportMetric(ms(medianOf(windows)), "ms/window")
		}
		b.ReportMetric(float64(len(windows)), "windows")
		b.ReportMetric(ms(slices.Max(traced)), "ms/longest")
		b.ReportMetric(ms(slices.Max(append(untraced, 0))), "untraced-ms/longest")
	}
}

// stalls runs the program for some seconds, recorded if there are flags for that, and returns how
// long it was held up each time.
func stalls(b *testing.B, path string, flags ...string) (list []time.Duration) {
	const long = 8 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := startServer(b, ctx, path)
	defer s.cmd.Process.Kill()
	if _, err := s.output.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	if len(flags) > 0 {
		r, err := tracer.Attach(ctx, s.cmd.Process.Pid, filepath.Join(b.TempDir(), "x.wpp"),
			flags...)
		if err != nil {
			b.Fatal(err)
		}
		time.Sleep(long)
		if err := r.Detach(); err != nil {
			b.Fatal(err)
		}
	} else {
		time.Sleep(long)
	}
	if err := s.cmd.Process.Signal(unix.SIGTERM); err != nil {
		b.Fatal(err)
	}
	text, err := io.ReadAll(s.output)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var us int
		if _, err := fmt.Sscan(line, &us); err != nil {
			b.Fatal(err)
		}
		list = append(list, time.Duration(us)*time.Microsecond)
	}
	if err := s.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	return list
}
