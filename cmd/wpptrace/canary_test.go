package main

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"testing"
)

// TestCanary tries probes in a process at work and in one that waits: both go on as if nothing had been.
func TestCanary(t *testing.T) {
	const work = 800_000 // some seconds: it is to last until the canary comes
	want := answers(t, work)
	for _, c := range []struct {
		name string
		busy bool
	}{{"at work", true}, {"waiting", false}} {
		t.Run(c.name, func(t *testing.T) {
			s := startServer(t)
			if c.busy {
				s.put(work)
			}
			out, err := exec.Command("wpptrace", "plan", "--canary", "--json", "-p", strconv.Itoa(s.pid())).Output()
			if err != nil {
				t.Fatal(err)
			}
			var plan struct{ Canary canary }
			if err := json.Unmarshal(out, &plan); err != nil {
				t.Fatal(err)
			}
			if got := plan.Canary; (got.Hits > 0) != c.busy || (got.SlowDown > 1) != c.busy || got.Seconds < canaryTime.Seconds() {
				t.Errorf("the canary tells %+v", got)
			}
			s.isClean()
			if !c.busy {
				s.put(work)
			}
			if got := s.answer(); got != want[0] {
				t.Errorf("the server answers %q, untraced %q", got, want[0])
			}
			s.end()
		})
	}
}
