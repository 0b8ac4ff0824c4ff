package query

import (
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/query/querytest"
)

// A path profile answers what depends on counts alone as the whole program path does that it was
// made of.
func TestProfileAnswersAsItsRecording(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := querytest.DrawSnapshot(t)
		profile := querytest.Counted(whole)
		q := HotQuery{MinLength: 1, MaxLength: 1, MinCost: rapid.Uint64Range(1, 9).Draw(t, "cost"),
			Kind: rapid.SampledFrom([]HotKind{Minimal, Maximal}).Draw(t, "kind")}
		want, err := Hot(whole, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Hot(profile, q)
		if diff := gocmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("hot: %v %s", err, diff)
		}
		blocks, entries, err := BlockCounts(whole, 0)
		if err != nil {
			t.Fatal(err)
		}
		gotBlocks, gotEntries, err := BlockCounts(profile, 0)
		if diff := gocmp.Diff([]any{blocks, entries},
			[]any{gotBlocks, gotEntries}); err != nil || diff != "" {
			t.Fatalf("blocks: %v %s", err, diff)
		}
		stat, err := NewStat(whole, 0)
		if err != nil {
			t.Fatal(err)
		}
		gotStat, err := NewStat(profile, 0)
		if err != nil || gotStat.Paths != stat.Paths || gotStat.Threads != stat.Threads ||
			gotStat.Instructions != stat.Instructions {
			t.Fatalf("figures: %v %+v, want %+v", err, gotStat, stat)
		}
	})
}

// A profile differs from another, or from a recording, as their recordings do.
func TestDiffOfProfiles(t *testing.T) {
	a, b := querytest.Letters("abcabc"), querytest.Letters("abcbcbccc")
	for i := range a.Images {
		a.Images[i].BuildID, b.Images[i].BuildID = []byte{1}, []byte{1}
	}
	q := DiffQuery{Hot: HotQuery{MinLength: 1, MaxLength: 1, MinCost: 1}}
	want, err := Diff(a, b, q)
	if err != nil || len(want.Paths) != 3 {
		t.Fatalf("%v, %+v", err, want)
	}
	ignore := gocmp.AllowUnexported(Difference{})
	for _, pair := range []struct {
		name          string
		first, second bool
	}{{"both", true, true}, {"the first", true, false}, {"the second", false, true}} {
		x, y := a, b
		if pair.first {
			x = querytest.Counted(a)
		}
		if pair.second {
			y = querytest.Counted(b)
		}
		got, err := Diff(x, y, q)
		if diff := gocmp.Diff(want, got, ignore); err != nil || diff != "" {
			t.Errorf("%s: %v %s", pair.name, err, diff)
		}
	}
}

// What needs the order of paths, or threads, is refused by name.
func TestProfileHasNoOrder(t *testing.T) {
	s := querytest.Counted(querytest.Letters("abcabc"))
	if _, err := NewFrequencies(s, 100); err == nil {
		t.Error("a thread's counts")
	}
	_, hot := Hot(s, HotQuery{MinLength: 1, MaxLength: 2})
	_, context := ContextOf(s, "a", 1)
	_, byLength := HotByLength(s)
	_, threads := Threads(s, nil)
	_, diff := Diff(s, s, DiffQuery{Hot: DefaultHotQuery()})
	for what, err := range map[string]error{"hot": hot, "context": context, "figure 9": byLength,
		"threads": threads, "diff": diff} {
		if !errors.Is(err, ErrUnordered) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// inClusters is the path profile of a recording of one thread in windows, each of which is a
// cluster.
func inClusters(s *wpp.Snapshot) *wpp.Snapshot {
	counts := pathprofile.Counts{Of: make([]uint64, len(s.Symbols)), Threads: 1, Runs: 1}
	window := make([]uint64, len(s.Symbols))
	for _, sym := range querytest.Streams(s)[0] {
		counts.Of[sym]++
		if window[sym]++; s.Symbols[sym].IsMark {
			counts.Clusters = append(counts.Clusters, pathprofile.Cluster{Windows: 1, Of: window})
			window = make([]uint64, len(s.Symbols))
		}
	}
	profile := *s
	profile.Threads, profile.Sections = nil, append([]*wpp.Section{counts.Section()}, s.Sections...)
	return &profile
}

// Of a recording in windows, a profile knows the whole run as well, and how sure differences are.
func TestProfileInWindows(t *testing.T) {
	one, two := inWindows(strings.Repeat("ab|abb|aab|", 20)), inWindows(strings.Repeat("ab|b|b|", 20))
	for _, s := range []*wpp.Snapshot{one, two} {
		s.Figures.SampledLeast, s.Figures.SampledMost = 0.09, 0.11
	}
	q := HotQuery{MinLength: 1, MaxLength: 1, MinCost: 1}
	want, err := Hot(one, q)
	if err != nil || want.InAll == nil || want.Subpaths[0].InAll == nil {
		t.Fatalf("%v, %+v", err, want)
	}
	got, err := Hot(inClusters(one), q)
	if diff := gocmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	d := DiffQuery{Hot: q, Share: true, All: true}
	differ, err := Diff(one, two, d)
	if err != nil || differ.Unsure != nil || differ.Paths[0].Certainty == nil {
		t.Fatalf("%v, %+v", err, differ)
	}
	other, err := Diff(inClusters(one), inClusters(two), d)
	if diff := gocmp.Diff(differ, other, gocmp.AllowUnexported(Difference{})); err != nil ||
		diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	// without clusters nothing of that is known
	bare := querytest.Counted(one)
	if got, err := Hot(bare, q); err != nil || got.InAll != nil {
		t.Errorf("%v, %+v", err, got)
	}
	if other, err := Diff(bare, bare, d); err != nil || other.Unsure == nil {
		t.Errorf("%v, %+v", err, other)
	}
}
