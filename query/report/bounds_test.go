package report

import (
	"encoding/json"
	"strings"
	"testing"

	"wpptrace/compress/wpp/overlapped"
	"wpptrace/query/bounds"
	"wpptrace/query/querytest"
)

// tallam is the loop of tables 4 and 5, of a recording, with or without the truth.
func tallam(t *testing.T, known bool) *bounds.Model {
	t.Helper()
	s, shapes := querytest.Table4(250)
	p, err := bounds.Follow(s, shapes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bounds.New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	if known {
		m.TakeTruth(m)
	}
	return m
}

// TestBounds prints tables 4 and 5, of degrees 0 and 1, beside the truth.
func TestBounds(t *testing.T) {
	for degree, want := range []string{`
Bounds by overlapping paths of degree 0; the greatest useful degree is 2

                    PLACES     PAIRS     EXACT       REAL            DEFINITE           POTENTIAL
all                      1         6         0       1000          0  -100.0%       2000  +100.0%
loops                    1         6         0       1000          0  -100.0%       2000  +100.0%
calls                    0         0         0          0                   0                   0
returns                  0         0         0          0                   0                   0
path counts alone        1         6         0       1000          0  -100.0%       2000  +100.0%

left out: 2 routines (its file is gone)

loop of loop (tallam.c:11)
       LOWER      UPPER      TRUTH  BLOCKS OF THE FIRST ! OF THE SECOND
           0        500        250  1 2 6 ! 1 3 5 6
           0        500        250  1 3 4 6 ! 1 3 5 6
           0        250        250  1 2 6 ! 1 2 6
           0        250          0  1 2 6 ! 1 3 4 6
           0        250          0  1 3 4 6 ! 1 2 6
  and 1 more pair: --paths 0 prints them
`, `
Bounds by overlapping paths of degree 1; the greatest useful degree is 2

                    PLACES     PAIRS     EXACT       REAL            DEFINITE           POTENTIAL
all                      1         6         2       1000        500   -50.0%       1500   +50.0%
loops                    1         6         2       1000        500   -50.0%       1500   +50.0%
calls                    0         0         0          0                   0                   0
returns                  0         0         0          0                   0                   0
path counts alone        1         6         0       1000          0  -100.0%       2000  +100.0%

left out: 2 routines (its file is gone)

loop of loop (tallam.c:11)
       LOWER      UPPER      TRUTH  BLOCKS OF THE FIRST ! OF THE SECOND
         250        500        250  1 3 4 6 ! 1 3 5 6
         250        250        250  1 2 6 ! 1 2 6
           0        250          0  1 2 6 ! 1 3 4 6
           0        250        250  1 2 6 ! 1 3 5 6
           0        250        250  1 3 4 6 ! 1 3 4 6
`} {
		var out strings.Builder
		r := NewBounds(tallam(t, true), degree, map[string]int{"its file is gone": 2}, nil,
			BoundsLimit{Paths: 5})
		if err := r.WriteText(&out); err != nil {
			t.Fatal(err)
		}
		if out.String() != want[1:] {
			t.Errorf("degree %d:\n%s", degree, out.String())
		}
	}
}

// TestBoundsWithoutTruth has no truth in any form, and null for it.
func TestBoundsWithoutTruth(t *testing.T) {
	r := NewBounds(tallam(t, false), 2, nil, nil, BoundsLimit{})
	var text, object, table, summary strings.Builder
	for _, err := range []error{r.WriteText(&text), r.WriteJSON(&object), r.WriteCSV(&table),
		WriteBoundsSummary(&summary, []*BoundsJSON{r, r})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const want = "         250        250          -  1 2 6 ! 1 2 6\n"
	if !strings.Contains(text.String(), want) {
		t.Error(text.String())
	}
	var got BoundsJSON
	if err := json.Unmarshal([]byte(object.String()), &got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(object.String(), `"truth":null`) || got.Flows[0].Real != nil ||
		len(got.Places) != 1 || len(got.Places[0].Paths) != 4 ||
		got.Places[0].Paths[0].Lower != 250 {
		t.Error(object.String())
	}
	if want := `kind,image,routine,address,callee,first,second,lower,upper,truth
loop,tallam,loop,1001,,1001 1002 1006,1001 1002 1006,250,250,
`; !strings.HasPrefix(table.String(), want) {
		t.Error(table.String())
	}
	if want := `
                       PATH COUNTS ALONE                  OVERLAPPING PATHS
PROGRAM          REAL          DEFINITE        POTENTIAL          DEFINITE        POTENTIAL   K MOST
tallam              -                 0             2000              1000             1000   2    2
tallam              -                 0             2000              1000             1000   2    2
all                 -                 0             4000              2000             2000
`; summary.String() != want[1:] {
		t.Error("\n" + summary.String())
	}
}

// TestBoundsOfAnotherRun compares with a recording in which other pairs ran.
func TestBoundsOfAnotherRun(t *testing.T) {
	m := tallam(t, false)
	s, shapes := querytest.Table4(100)
	p, err := bounds.Follow(s, shapes)
	if err != nil {
		t.Fatal(err)
	}
	other, err := bounds.New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := m.TakeTruth(other)
	r := NewBounds(m, 2, nil, &elsewhere, BoundsLimit{})
	if elsewhere != 0 || *r.Flows[0].Real != 400 || *r.Flows[0].Outside != 4 {
		t.Errorf("%d elsewhere, %+v", elsewhere, r.Flows[0])
	}
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	const want = "4 pairs not within the bounds: that was another run"
	if !strings.Contains(out.String(), want) {
		t.Error(out.String())
	}
}

// TestBoundsLeftOut names a loop that is left out, and how often it went around.
func TestBoundsLeftOut(t *testing.T) {
	s, shapes := querytest.Table4(250)
	shapes[0].Loops[0].LeftOut = "the loop can be entered other than at its head"
	p, err := bounds.Follow(s, shapes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bounds.New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := NewBounds(m, 0, nil, nil, BoundsLimit{}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no pair: 1000 times (the loop is left out)\n",
		"left out: 1 place, as the loop of loop (tallam.c:11): the loop can be entered other " +
			"than at its head\n"} {
		if !strings.Contains(out.String(), want) {
			t.Error(out.String())
		}
	}
}

// TestBoundsUncounted: where memory for counts was used up at a path, its places have no bounds.
func TestBoundsUncounted(t *testing.T) {
	s, shapes := querytest.Table4(250)
	p, err := bounds.Follow(s, shapes)
	if err != nil {
		t.Fatal(err)
	}
	p.Uncounted = []uint32{0} // it ends with the back edge
	m, err := bounds.New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	r := NewBounds(m, 0, nil, nil, BoundsLimit{})
	if len(r.Places) != 1 || r.Places[0].LeftOut == nil || r.Flows[0].LeftOut != 1 ||
		*r.Places[0].LeftOut != "not all pairs are counted, for there are too many" {
		t.Errorf("%+v", r)
	}
}

// TestBoundsWidth: reasons, with the names and files that are in them, go on in the next line.
func TestBoundsWidth(t *testing.T) {
	s, shapes := querytest.Table4(250)
	s.Routines[0].Name = strings.Repeat("long", 40)
	shapes[0].Loops[0].LeftOut = "the loop can be entered other than at its head"
	p, err := bounds.Follow(s, shapes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := bounds.New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	leftOut := map[string]int{"open image: open /usr/" + strings.Repeat("x", 70) +
		": no such file or directory": 2}
	var out strings.Builder
	if err := NewBounds(m, 0, leftOut, nil, BoundsLimit{}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > TableColumns+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	for _, want := range []string{"left out: 2 routines (open image: open\n          /usr/xx",
		"the loop can\n          be entered other than at its head\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nwithout %q", out.String(), want)
		}
	}
}

// TestBoundsSummaryLeftOut: what path counts alone bound is beside the truth of the places that
// they bound, where there are too many pairs at others.
func TestBoundsSummaryLeftOut(t *testing.T) {
	most, least := uint64(1000), uint64(100)
	r := &BoundsJSON{Program: "p", Flows: []BoundsFlow{{
		BoundsSums: BoundsSums{Definite: 1000, Potential: 1000, Real: &most}}},
		Alone: BoundsFlow{BoundsSums: BoundsSums{Definite: 50, Potential: 200, Real: &least}}}
	var out strings.Builder
	if err := WriteBoundsSummary(&out, []*BoundsJSON{r}); err != nil {
		t.Fatal(err)
	}
	if want := "p                1000        50  -50.0%      200 +100.0%      1000   +0.0%"; !strings.
		Contains(out.String(), want) {
		t.Errorf("%s\nwithout %q", out.String(), want)
	}
}

// TestBoundsAgainstUntraced: where the other recording did not trace a routine, it is not known how
// often its pairs ran, and not that they did not.
func TestBoundsAgainstUntraced(t *testing.T) {
	m := tallam(t, false)
	s, _ := querytest.Table4(100)
	s.Routines[0].LeftOut, s.Symbols, s.Threads = "not selected", nil, nil
	other, err := bounds.New(s, &overlapped.Profile{Degree: bounds.Whole})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := m.TakeTruth(other)
	r := NewBounds(m, 2, nil, &elsewhere, BoundsLimit{})
	if len(r.Places) != 1 || r.Places[0].LeftOut == nil || r.Places[0].Real != nil ||
		*r.Flows[0].Outside != 0 {
		t.Errorf("%+v", r)
	}
}

// TestBoundsLost says that pairs may have run that were not recorded.
func TestBoundsLost(t *testing.T) {
	m := tallam(t, true)
	m.Snapshot.Figures.Lost = 7
	var out strings.Builder
	if err := NewBounds(m, 2, nil, nil, BoundsLimit{}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	const want = "\nLost: 7 events: pairs ran as often as is counted, or more often\n"
	if !strings.Contains(out.String(), want) {
		t.Error(out.String())
	}
}
