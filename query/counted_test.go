package query

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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
