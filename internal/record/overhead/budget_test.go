package overhead

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A heavy process is traced in windows that cost what the budget allows, a light one all the time,
// an idle one too.
func TestBudget(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what            string
		own, probes     time.Duration // in each ms while probes stand, the probes' first
		overhead, error float64
	}{
		{"heavy", 100 * time.Microsecond, 900 * time.Microsecond, 0.05, 0.005},
		{"light", 990 * time.Microsecond, 10 * time.Microsecond, 0.0101, 0.0001},
		{"idle", 0, 0, 0, 0},
	} {
		const window = 10
		b, standing, since := newBudget(0.05), true, 0
		for i := range 100_000 {
			switch {
			case standing && b.overdrawn() && i-since >= window:
				standing = false
			case !standing && !b.overdrawn():
				standing, since = true, i
			}
			if standing {
				b.account(use{c.own, c.probes})
			} else {
				b.account(use{Own: ms})
			}
		}
		if got := b.overhead(0); math.Abs(got-c.overhead) > c.error {
			t.Errorf("%s: overhead %.4f, want %v", c.what, got, c.overhead)
		}
	}
}

// What is known of the CPU time that was the process's own bounds what the probes took of it all.
func TestOverhead(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name  string
		use   use
		least time.Duration
		want  float64
	}{
		{"nothing more is known", use{Own: 100 * ms, Probes: 20 * ms}, 0, 0.2},
		{"less is certain than was taken for its own", use{Own: 100 * ms, Probes: 20 * ms}, 50 * ms,
			0.2},
		{"a part of what the probes were charged with was its own",
			use{Own: 80 * ms, Probes: 40 * ms}, 100 * ms, 0.2},
		{"hits are said to have taken more than there was", use{Own: -10 * ms, Probes: 130 * ms},
			100 * ms, 0.2},
		{"all was its own", use{Own: 80 * ms, Probes: 10 * ms}, 100 * ms, 0},
	} {
		b := newBudget(0.05)
		b.account(c.use)
		if got := b.overhead(c.least); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: overhead %v, want %v", c.name, got, c.want)
		}
	}
}

// Savings are bounded: after a calm hour, a heavy minute costs no more than the share of a second.
func TestSavings(t *testing.T) {
	b := newBudget(0.05)
	b.account(use{Own: time.Hour})
	spent := time.Duration(0)
	for ; !b.overdrawn(); spent += time.Millisecond {
		b.account(use{Probes: time.Millisecond})
	}
	if spent < 50*time.Millisecond || spent > 52*time.Millisecond {
		t.Errorf("%v spent", spent)
	}
}

// Whatever a process does, who spends only while the account is not overdrawn spends no more than
// its share, but for the last stretch and what it began with.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.Float64Range(0.001, 0.5).Draw(t, "share")
		b := newBudget(share)
		var own, probes, largest time.Duration
		for range rapid.IntRange(1, 200).Draw(t, "stretches") {
			u := use{Own: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "own"))}
			if b.overdrawn() {
				b.account(u)
			} else {
				u.Probes = time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "probes"))
				b.account(u)
			}
			own, probes, largest = own+u.Own, probes+u.Probes, max(largest, u.Probes)
		}
		if most := share*float64(own+advance) + float64(largest) + 1; float64(probes) > most {
			t.Errorf("%v spent on probes, with %v of its own", probes, own)
		}
	})
}
