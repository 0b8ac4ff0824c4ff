package traced

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/store"
	"wpptrace/loader/cfg"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
)

// Weights are taken from a recording of the very same build, which only a build id shows: two
// programs without one are not the same.
func TestWeightsAreOfTheSameBuild(t *testing.T) {
	for _, test := range []struct {
		name     string
		ours     string
		recorded []byte
		refusal  string
	}{
		{"the same", "0102", []byte{1, 2}, ""},
		{"another", "0103", []byte{1, 2}, "that is a recording of another build"},
		{"the recording has none", "0102", nil, "that is a recording of another build"},
		{"the program has none", "", []byte{1, 2}, "the program has no build id"},
		{"neither has one", "", nil, "the program has no build id"},
	} {
		path := filepath.Join(t.TempDir(), "x.wpp")
		if err := store.WriteFile(path,
			&wpp.Snapshot{Images: []wpp.Image{{Name: "prog", BuildID: test.recorded}}}); err !=
			nil {
			t.Fatal(err)
		}
		w, err := readWeights(path, &image.Image{Name: "prog", BuildID: test.ours}, false)
		switch {
		case test.refusal == "" && (err != nil || w == nil):
			t.Errorf("%s: weights %v, error %v", test.name, w, err)
		case test.refusal != "" && (err == nil || !strings.Contains(err.Error(), test.refusal)):
			t.Errorf("%s: error %v, want %q", test.name, err, test.refusal)
		}
	}
	// Segments that cannot be read were a mistake of wpptrace's.
	const lies, want = "../../compress/wpp/format/testdata/version3-lies.wpp",
		"it is not as large as it says"
	if _, err := readWeights(lies, &image.Image{Name: "demo", BuildID: "dead"},
		false); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want %q", lies, err, want)
	}
	if w, err := readWeights("", &image.Image{}, false); w != nil || err != nil {
		t.Errorf("without --weights: %v, %v", w, err)
	}
}

// A plan with nothing to record is an error that says why.
func TestRecordable(t *testing.T) {
	good := &plan.Routine{Routine: &cfg.Routine{Name: "good"}}
	bad := &plan.Routine{Routine: &cfg.Routine{Name: "bad"},
		LeftOut: "needs a single-stepped probe at 401000"}
	isBad := func(r *cfg.Routine) bool { return r.Name == "bad" }
	one := []plan.Site{{}}
	for _, c := range []struct {
		plan    plan.Plan
		selects func(r *cfg.Routine) bool
		want    string // in the error; "": there is none
	}{
		{plan.Plan{Routines: []*plan.Routine{good, bad}, Sites: one}, nil, ""},
		{plan.Plan{Routines: []*plan.Routine{good, bad}, Sites: one}, isBad,
			"plan probes of prog: none of the 1 routines that are selected can be traced, as " +
				"bad: " + bad.LeftOut},
		{plan.Plan{Routines: []*plan.Routine{bad, bad}}, nil, "none of the 2 routines"},
		{plan.Plan{Routines: []*plan.Routine{good}}, nil, "there is no place for any"},
		{plan.Plan{}, nil, "there is no place for any"},
	} {
		err := (&Program{Plan: &c.plan, selects: c.selects}).CheckRecordable("prog")
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) &&
			c.want != "" {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
