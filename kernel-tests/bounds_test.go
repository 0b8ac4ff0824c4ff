package kerneltests

import (
	"fmt"
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/paths/overlap"
	"wpptrace/query/bounds"
)

// boundsHold fails the test unless each pair of paths ran at least as often as its lower bound says
// and at most as often as its upper one: by overlapping paths of several degrees, and by counts of
// paths alone. The truth is what stands side by side in the streams of threads. Bounds are never
// wider for a greater degree, and exact at the greatest useful one. Of a profile of a run that was
// alike they hold, too, but for routines aside. It returns the flow of the recording at a third of
// the greatest useful degree.
func boundsHold(t *testing.T, whole, profile *wpp.Snapshot, aside []string,
	by beginnings) (third bounds.Flow) {
	t.Helper()
	p, err := overlapped.Of(profile)
	if err != nil {
		t.Fatal(err)
	}
	followed, err := bounds.Follow(whole, p.Shapes)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, c := range followed.Counts {
		got[overlapName(whole, c.Path, followed.Extensions[c.Extension])] += c.N
	}
	want := overlapsIn(t, whole, profile, &overlapped.Profile{Degree: bounds.Whole,
		Shapes: p.Shapes}, nil, by)
	if diff := cmp.Diff(want.nearest(got), got); diff != "" {
		t.Errorf("%d pairs, and %d were found: %s", len(want), len(got), diff)
	}
	truth, err := bounds.New(whole, followed)
	if err != nil {
		t.Fatal(err)
	}
	if n := truth.TakeTruth(truth); n > 0 {
		t.Errorf("%d pairs have no place", n)
	}
	var before bounds.Flow
	for _, k := range []int{bounds.Alone, 0, 1, 2, 4, max(4, truth.Degree())} {
		flow := flowOf(t, truth, k)
		if k > bounds.Alone &&
			(flow.Definite < before.Definite || flow.Potential > before.Potential) {
			t.Errorf("degree %d: %+v is wider than %+v", k, flow, before)
		}
		before = flow
	}
	if before.Definite != before.Real || before.Potential != before.Real {
		t.Errorf("degree %d is not exact: %+v", truth.Degree(), before)
	}
	t.Logf("%d pairs at most %d predicates long ran %d times", len(got), truth.Degree(),
		before.Real)
	third = flowOf(t, truth, truth.Degree()/3)
	if len(aside) > 0 {
		return third // what it ran there is another each time
	}
	counted, err := bounds.New(profile, p)
	if err != nil {
		t.Fatal(err)
	}
	if n := counted.TakeTruth(truth); n > 0 {
		t.Errorf("pairs of paths that the profile does not have ran %d times", n)
	}
	for k := bounds.Alone; k <= p.Degree; k++ {
		if diff := cmp.Diff(flowOf(t, truth, k), flowOf(t, counted, k)); diff != "" {
			t.Errorf("degree %d, of the recording and of the profile: %s", k, diff)
		}
	}
	return third
}

// flowOf sums up bounds, each of which has to hold.
func flowOf(t *testing.T, m *bounds.Model, k int) (all bounds.Flow) {
	t.Helper()
	for a := range m.Answers(k) {
		if a.LeftOut != "" && a.LeftOut != overlap.Irreducible &&
			a.LeftOut != overlapped.Mixed.String() {
			t.Errorf("degree %d: %s", k, a.LeftOut)
		}
		if a.Outside > 0 {
			for r := range a.Rows() {
				if r.Truth < r.Lower || r.Truth > r.Upper {
					t.Errorf("degree %d: %s ran %d times, not %d to %d", k, fmt.Sprint(a.Place,
						r.First, r.Second), r.Truth, r.Lower, r.Upper)
				}
			}
		}
		all.Add(a.Flow)
	}
	return all
}

// TestProfileOfPerl has all that holds of other programs hold of perl, whose routines have paths of
// many predicates.
func TestProfileOfPerl(t *testing.T) {
	perl, err := exec.LookPath("perl")
	if err != nil {
		testenv.Missing(t, err)
	}
	countsAgree(t, exact.Target{Path: perl, Args: []string{"-e", `
		my %h;
		for my $i (1..60) { $h{$i % 7} .= "x$i" }
		print join(",", map { length $h{$_} } sort keys %h), scalar(grep { /x1\d/ } values %h);`},
		Env: append(zoo.Env(), "PERL_HASH_SEED=0", "PERL_PERTURB_KEYS=0"), Dir: t.TempDir(),
		FixedAddresses: true}, nil)
}
