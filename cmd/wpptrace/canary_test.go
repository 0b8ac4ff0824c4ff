package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"wpptrace/internal/planreport"
	"wpptrace/internal/testenv"
)

// TestCanary tries probes in a process at work and in one that waits: both go on as if nothing had
// been.
func TestCanary(t *testing.T) {
	const work = 20_000
	for _, c := range []struct {
		name string
		busy bool
	}{{"at work", true}, {"waiting", false}} {
		t.Run(c.name, func(t *testing.T) {
			s := testenv.StartServer(t)
			tried := make(chan []byte)
			go func() {
				out, err := exec.Command("wpptrace", "plan", "--canary", "--json", "-p",
					strconv.Itoa(s.PID())).Output()
				if err != nil {
					t.Error(err)
				}
				tried <- out
			}()
			var out []byte
			var got []string
			for done := false; !done; {
				if c.busy {
					got = append(got, s.Ask(work))
				}
				select {
				case out = <-tried:
					done = true
				case <-time.After(time.Millisecond):
				}
			}
			var plan struct{ Canary planreport.Canary }
			if err := json.Unmarshal(out, &plan); err != nil {
				t.Fatal(err)
			}
			stood := plan.Canary.Seconds / planreport.CanaryTime.Seconds()
			if got := plan.Canary; (got.Hits > 0) != c.busy ||
				(got.SlowDown != nil && *got.SlowDown > 1) != c.busy || stood < 0.9 {
				// the kernel's timers may be a tick early
				t.Errorf("the canary reports %+v", got)
			}
			s.IsClean()
			got = append(got, s.Ask(work))
			if want := answers(t, slices.Repeat([]int{work}, len(got))...); !slices.Equal(got,
				want) {
				t.Errorf("the server answers %q, untraced %q", got, want)
			}
			s.End()
		})
	}
}
