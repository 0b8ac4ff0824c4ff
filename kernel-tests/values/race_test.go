package valuetests

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"wpptrace/compress/wet"
	"wpptrace/compress/wpp/store"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
)

// TestRacesAreNeverSilent: what others write while it is read, threads, another process, by way of
// a file, a signal's handler, or the kernel for restartable sequences, is not confirmed unless it
// was read so, nor is it where the recording ends. What was read, the program says itself.
func TestRacesAreNeverSilent(t *testing.T) {
	program := compile(t, "race.c", "-O2", "-pthread")
	for _, c := range []struct {
		how       string
		confirmed float64 // of the instructions, at least
		mistaken  int     // values that are not confirmed, and are others: at least
	}{{"process", 0.05, 1000}, {"file", 0.05, 1000}, {"thread", 0.05, 1000}, {"signal", 0.05, 0},
		{"sequences", 0.05, 1000}, {"2", 0.4, 0}, {"4", 0.4, 0}, {"slots", 0.3, 0}} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "race.wpp")
			target := exact.Target{Path: program, Args: []string{c.how}, Env: zoo.Env()}
			r, outcome := recordedTo(t, file, target, "-F", "^(race_|thread$)")
			race := raced{t: t, saw: map[uint64]uint64{}}
			const noGate, noSequences = 77, 78
			switch outcome.Exit {
			case noGate:
				t.Skip("this kernel, or a sandbox, has no userfaultfd")
			case noSequences:
				t.Skip("this C library has no restartable sequences, or there is one processor")
			}
			race.read(outcome.Stdout)
			for _, s := range r.Streams {
				race.compare(s)
			}
			race.log()
			if c.how == "slots" {
				isWithoutStates(t, file, r.Streams)
			}
			if share := float64(race.by[truth.Confirmed]) / float64(race.steps); share <
				c.confirmed {
				t.Errorf("%.1f %% of the instructions are confirmed, and %.0f %% are asked for",
					100*share, 100*c.confirmed)
			}
			if race.compared < 5000 || race.mistaken < c.mistaken {
				t.Errorf("%d values are compared, and %d of them are mistaken: others do not "+
					"write in time", race.compared, race.mistaken)
			}
		})
	}
}

// isWithoutStates fails the test unless the second thread's hits are counted as unseen, and what it
// has loaded is not known.
func isWithoutStates(t *testing.T, file string, streams []*truth.ValueStream) {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := wet.CountsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(streams) != 2 || c.Missing < c.Hits/3 || c.Wrong > 0 {
		t.Fatalf("%d threads, %+v", len(streams), *c)
	}
	for _, x := range streams[1].Steps {
		for _, a := range x.Accesses {
			if !a.Write && a.Sureness != truth.Unknown {
				t.Fatalf("at %x, it is known what a thread loads without states: %+v", x.PC, a)
			}
		}
	}
}

// recordedTo records a program's values to a file, and returns them with what the program did.
func recordedTo(t *testing.T, file string, target exact.Target,
	flags ...string) (*exact.ValueRecord, exact.Outcome) {
	t.Helper()
	outcome, err := tracer.ValuesTo(t.Context(), file, target, flags...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tracer.ReadValues(t.Context(), file, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r, outcome
}

// A raced is a run of which it is known what was read, by where that is kept.
type raced struct {
	t        *testing.T
	saw      map[uint64]uint64
	steps    int
	by       [3]int // instructions, by how sure they are
	compared int
	unsure   int // of these, values that are not confirmed
	mistaken int // and that are others
}

func (r *raced) read(output []byte) {
	for line := range bytes.Lines(output) {
		var at, v uint64
		if _, err := fmt.Sscanf(string(line), "%x %x", &at, &v); err != nil {
			r.t.Fatal(err)
		}
		r.saw[at] = v
	}
}

// compare compares what is kept, and what was loaded last before.
func (r *raced) compare(s *truth.ValueStream) {
	var last *truth.ReportedAccess
	for i := range s.Steps {
		step := &s.Steps[i]
		r.steps++
		r.by[step.Sure()]++
		for k := range step.Accesses {
			a := &step.Accesses[k]
			want, isKept := r.saw[a.Addr]
			switch {
			case !a.Placed:
				last = nil
			case a.Write && isKept:
				r.check(step, a, want)
				if last != nil {
					r.check(step, last, want)
				}
			case !a.Write && len(a.Bytes) == 8:
				last = a
			}
		}
	}
}

func (r *raced) check(step *truth.ReportedStep, a *truth.ReportedAccess, want uint64) {
	r.compared++
	isSame := len(a.Bytes) == 8 && binary.LittleEndian.Uint64(a.Bytes) == want
	switch {
	case a.Sureness == truth.Confirmed && !isSame:
		r.t.Errorf("at %x, %x is confirmed to be %x, and was %x", step.PC, a.Addr, a.Bytes, want)
	case a.Sureness != truth.Confirmed:
		r.unsure++
		if a.Sureness == truth.Unconfirmed && !isSame {
			r.mistaken++
		}
	}
}

func (r *raced) log() {
	r.t.Logf("%d instructions: %d confirmed, %d unconfirmed, %d unknown; %d values compared, %d "+
		"of them not confirmed, %d of these wrong", r.steps, r.by[truth.Confirmed],
		r.by[truth.Unconfirmed], r.by[truth.Unknown], r.compared, r.unsure, r.mistaken)
}
