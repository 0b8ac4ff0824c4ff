package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"wpptrace/internal/record"
)

// A canary whose time nearly all went to hits prints both bounds of the slow-down.
func TestCanaryPrintsBounds(t *testing.T) {
	const stood = 50 * time.Millisecond
	for want, c := range map[string]record.Trial{
		"not a hit in 50 ms: it did not run; try again when it does": {Stood: stood},
		"not a hit in 50 ms: it ran for 0.2 ms, but not its own code": {Stood: stood,
			CPUTime: 200 * time.Microsecond},
		"slowed down 2.5 times, by 7 hits in 50 ms": {Stood: stood, Hits: 7, SlowDown: 2.5},
		"slowed down at least 5.5 times, at most 700, by 7 hits in 50 ms": {Stood: stood, Hits: 7,
			SlowDown: 5.5, Vague: true, Most: 700},
		"slowed down at least 5.5 times, by 7 hits in 50 ms": {Stood: stood, Hits: 7,
			SlowDown: 5.5, Vague: true},
		"slowed down at least 5.5 times, likely some 70, at most 700, by 7 hits in 50 ms": {
			Stood: stood, Hits: 7, SlowDown: 5.5, Vague: true, Most: 700, Likely: 70},
	} {
		if got := canaryText(&c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestCanary tries probes in a process at work and in one that waits: both go on as if nothing had
// been.
func TestCanary(t *testing.T) {
	const work = 20_000
	for _, c := range []struct {
		name string
		busy bool
	}{{"at work", true}, {"waiting", false}} {
		t.Run(c.name, func(t *testing.T) {
			s := startServer(t)
			tried := make(chan []byte)
			go func() {
				out, err := exec.Command("wpptrace", "plan", "--canary", "--json", "-p",
					strconv.Itoa(s.pid())).Output()
				if err != nil {
					t.Error(err)
				}
				tried <- out
			}()
			var out []byte
			var got []string
			for done := false; !done; {
				if c.busy {
					got = append(got, s.ask(work))
				}
				select {
				case out = <-tried:
					done = true
				case <-time.After(time.Millisecond):
				}
			}
			var plan struct{ Canary canaryJSON }
			if err := json.Unmarshal(out, &plan); err != nil {
				t.Fatal(err)
			}
			stood := plan.Canary.Seconds / canaryTime.Seconds()
			if got := plan.Canary; (got.Hits > 0) != c.busy ||
				(got.SlowDown != nil && *got.SlowDown > 1) != c.busy || stood < 0.9 {
				// the kernel's timers may be a tick early
				t.Errorf("the canary tells %+v", got)
			}
			s.isClean()
			got = append(got, s.ask(work))
			if want := answers(t, slices.Repeat([]int{work}, len(got))...); !slices.Equal(got,
				want) {
				t.Errorf("the server answers %q, untraced %q", got, want)
			}
			s.end()
		})
	}
}
