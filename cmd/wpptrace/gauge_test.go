package main

import (
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"wpptrace/loader/attach"
)

func TestSlower(t *testing.T) {
	for _, c := range []struct {
		cpu, hits time.Duration
		want      float64
	}{
		{time.Second, 0, 1},
		{time.Second, 500 * time.Millisecond, 4},
		{time.Second, 600 * time.Millisecond, 10},
		{time.Second, 900 * time.Millisecond, mostSlower},
		{time.Second, time.Second, mostSlower},
		{time.Second, 3 * time.Second, mostSlower},
	} {
		if got := slower(c.cpu, c.hits); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%v, of it %v for hits: %v, want %v", c.cpu, c.hits, got, c.want)
		}
	}
}

// Hits are charged by class, what was charged stays charged, and counts that fall back for once do no harm.
func TestGaugeCharges(t *testing.T) {
	g := &gauge{cost: attach.Cost{Emulated: time.Microsecond, Stepped: 20 * time.Microsecond}}
	for _, c := range []struct {
		hits, stepped uint64
		want          time.Duration
	}{
		{100, 0, 100 * time.Microsecond},
		{200, 50, 100*time.Microsecond + 50*time.Microsecond + 1000*time.Microsecond},
		{150, 40, 1150 * time.Microsecond},
		{210, 50, 1160 * time.Microsecond},
	} {
		if got := g.add(time.Second, c.hits, c.stepped).hits; got != c.want {
			t.Errorf("%d hits, %d single-stepped: %v, want %v", c.hits, c.stepped, got, c.want)
		}
	}
}

// The slow-down is that of the last window, and not told of a process that hardly runs.
func TestGaugeWindow(t *testing.T) {
	g := &gauge{}
	begin := time.Now()
	at := func(s float64, cpu, hits time.Duration) sample {
		return sample{begin.Add(time.Duration(s * float64(time.Second))), cpu, hits}
	}
	if _, ok := g.recent(); ok {
		t.Error("a slow-down without a sample")
	}
	g.samples = []sample{at(0, 0, 0), at(0.5, 500*time.Millisecond, 400*time.Millisecond)}
	if _, ok := g.recent(); ok {
		t.Error("a slow-down of half a window")
	}
	g.samples = []sample{at(0, 0, 0), at(1.1, 20*time.Millisecond, 19*time.Millisecond)}
	if _, ok := g.recent(); ok {
		t.Error("a slow-down of an idle process")
	}
	g.samples = []sample{at(0, time.Second, time.Second), at(1, 2*time.Second, time.Second+1600*time.Millisecond/3)}
	if got, ok := g.recent(); !ok || math.Abs(got-5) > 1e-6 {
		t.Errorf("%v %v, want 5", got, ok)
	}
}

// A status line is shown where stderr is a terminal, and taken away at the end.
func TestStatusLine(t *testing.T) {
	s := startServer(t)
	if _, err := fmt.Fprintln(s.in, 1<<40); err != nil { // it never answers: the test's end is its end
		t.Fatal(err)
	}
	command := "wpptrace -p " + strconv.Itoa(s.pid()) + " -d 2500ms --max-slowdown 0 -o " + t.TempDir() + "/x.wpp"
	out, err := exec.Command("script", "-qec", command, "/dev/null").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	for _, want := range []string{" paths/s  ring ", " rules  ratio ", "  lost 0", "\r\x1b[K"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	if _, after, _ := strings.Cut(text, "wpptrace: 2.5s are over"); strings.Contains(after, "paths/s") {
		t.Errorf("the line stays: %q", text)
	}
	s.isClean()
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 1000: "1.0k", 12345: "12.3k", 123456: "123k", 2.5e6: "2.5M", 7e9: "7.0G", 3e12: "3T"} {
		if got := short(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
