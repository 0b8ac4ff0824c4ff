package query

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/names"
	"wpptrace/query/querytest"
)

func TestDiff(t *testing.T) {
	a, b := querytest.BuildOf(querytest.Letters("abcabcx", "ab"),
		"1"), querytest.BuildOf(querytest.Letters("bcbcbcxdd"), "1")
	// Letters are numbered, and their routines stand, as they come; entries identify them.
	both := [2]*wpp.Snapshot{a, b}
	r, err := Diff(a, b, DiffQuery{Hot: HotQuery{MinLength: 2, MaxLength: 2, MinCost: 4,
		Metric: Instructions}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"gone a 3 0", "new d 0 2", "hotter c 2 3"}
	if got := differences(r.Paths, both); !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
	want = []string{"gone ab 3 0", "new cb 0 2", "hotter bc 2 3"}
	if got := differences(r.Subpaths, both); !slices.Equal(got, want) {
		t.Errorf("subpaths %q, want %q", got, want)
	}
}

// What one snapshot does not trace was said to be gone, or new: a routine that it leaves out, a
// library that is none of its images.
func TestDiffOfUntraced(t *testing.T) {
	a, b := querytest.BuildOf(querytest.Letters("xabcabc"),
		"1"), querytest.BuildOf(querytest.Letters("xadada"), "1")
	b.Routines = append(b.Routines, wpp.Routine{Name: "b", Entry: 0x2000, LeftOut: "not selected"})
	a.Images = append(a.Images, wpp.Image{Name: "/lib/libc.so", BuildID: []byte("2")})
	a.Routines[3].Image = 1 // c
	q := DiffQuery{Hot: HotQuery{MinLength: 2, MaxLength: 2, MinCost: 3, Metric: Instructions}}
	for _, c := range []struct {
		first, second   *wpp.Snapshot
		paths, subpaths []string
	}{
		{a, b, []string{"unseen b 2 0", "unseen c 2 0", "new d 0 2", "hotter a 2 3"},
			[]string{"unseen ab 2 0", "unseen ad 0 2", "unseen bc 2 0", "unseen da 0 2"}},
		{b, a, []string{"gone d 2 0", "unseen b 0 2", "unseen c 0 2", "colder a 3 2"},
			[]string{"unseen ad 2 0", "unseen ab 0 2", "unseen da 2 0", "unseen bc 0 2"}},
	} {
		both := [2]*wpp.Snapshot{c.first, c.second}
		r, err := Diff(c.first, c.second, q)
		if err != nil {
			t.Fatal(err)
		}
		if got := differences(r.Paths, both); !slices.Equal(got, c.paths) {
			t.Errorf("paths %q, want %q", got, c.paths)
		}
		if got := differences(r.Subpaths, both); !slices.Equal(got, c.subpaths) {
			t.Errorf("subpaths %q, want %q", got, c.subpaths)
		}
	}
}

// nameOf is the routines' names of a difference of two snapshots.
func nameOf(d *Difference, both [2]*wpp.Snapshot) (name string) {
	for _, p := range d.Paths {
		name += names.Of(both[p.Snapshot]).Routine(both[p.Snapshot].Symbols[p.Symbol].Routine)
	}
	return name
}

func differences(list []Difference, both [2]*wpp.Snapshot) (texts []string) {
	for i := range list {
		d := &list[i]
		name := nameOf(d, both)
		texts = append(texts, fmt.Sprint(d.Change, " ", name, " ", d.CountA, " ", d.CountB))
	}
	return texts
}

func TestDiffRefuses(t *testing.T) {
	q := DiffQuery{Hot: DefaultHotQuery()}
	other := querytest.BuildOf(querytest.Letters("a"), "1")
	other.Images[0].Name = "/usr/bin/digits"
	for name, pair := range map[string][2]*wpp.Snapshot{
		"another build": {querytest.BuildOf(querytest.Letters("a"), "1"),
			querytest.BuildOf(querytest.Letters("a"), "2")},
		"no build id":     {querytest.Letters("a"), querytest.Letters("a")},
		"another program": {querytest.BuildOf(querytest.Letters("a"), "1"), other},
	} {
		if _, err := Diff(pair[0], pair[1], q); !errors.Is(err, ErrOtherBuild) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Diff(other, other, DiffQuery{Hot: DefaultHotQuery(), Top: -1}); err == nil {
		t.Error("-1 differences")
	}
	if _, err := Diff(other, other, DiffQuery{}); err == nil {
		t.Error("no lengths")
	}
}

// What was made of traces has no build id and no instructions: names identify the routines, and
// each path costs 1.
func TestDiffOfTraces(t *testing.T) {
	trace := func(file, text string) *wpp.Snapshot {
		s := querytest.Letters(text)
		s.Images[0].Name = file
		for i := range s.Routines {
			s.Routines[i].Blocks = nil
		}
		for i := range s.Symbols {
			s.Symbols[i].Blocks = nil
		}
		return s
	}
	both := [2]*wpp.Snapshot{trace("one.raw", "abab"), trace("two.raw", "bababac")}
	r, err := Diff(both[0], both[1],
		DiffQuery{Hot: HotQuery{MinLength: 2, MaxLength: 2, MinCost: 4}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"hotter a 2 3", "hotter b 2 3", "new c 0 1"}
	if got := differences(r.Paths, both); !slices.Equal(got, want) || r.TotalA != 4 ||
		r.TotalB != 7 || r.Query.Hot.Metric != Executions {
		t.Errorf("paths %q, want %q; %+v", got, want, r)
	}
	want = []string{"hotter ba 1 3"}
	if got := differences(r.Subpaths, both); !slices.Equal(got, want) {
		t.Errorf("subpaths %q, want %q", got, want)
	}
	if _, err := Diff(trace("one.raw", "a"), trace("two.raw", "b"),
		DiffQuery{Hot: DefaultHotQuery()}); !errors.Is(err, ErrOtherBuild) {
		t.Errorf("nothing in common: error %v", err)
	}
}

// Two images of a snapshot may have no build id: their routines are distinguished by names.
func TestDiffOfImagesWithoutBuildIDs(t *testing.T) {
	of := func(text, image string) *wpp.Snapshot {
		s := querytest.BuildOf(querytest.Letters(text), "1")
		s.Images = append(s.Images, wpp.Image{Name: image})
		last := &s.Routines[len(s.Routines)-1]
		last.Image, last.Name, last.Entry = 1, image, 7
		return s
	}
	both := [2]*wpp.Snapshot{of("ab", "x"), of("ab", "y")}
	r, err := Diff(both[0], both[1], DiffQuery{Hot: DefaultHotQuery()})
	want := []string{"gone x 1 0", "new y 0 1"}
	if err != nil || !slices.Equal(differences(r.Paths, both), want) {
		t.Errorf("%+v, error %v, want %q", r, err, want)
	}
}

func TestDiffOfItself(t *testing.T) {
	s := querytest.BuildOf(querytest.Compressor(), "1")
	s.Images[1].BuildID = []byte("2")
	r, err := Diff(s, s, DiffQuery{Hot: DefaultHotQuery(), Share: true})
	if err != nil || len(r.Paths)+len(r.Subpaths) > 0 {
		t.Errorf("%+v %v", r, err)
	}
}

func TestDiffEqualsBruteForce(t *testing.T) {
	type numbers struct{ Counts, Costs [2]uint64 }
	rapid.Check(t, func(t *rapid.T) {
		a, b := querytest.BuildOf(querytest.DrawSnapshot(t),
			"1"), querytest.BuildOf(querytest.DrawSnapshot(t), "1")
		for i := range b.Routines { // the same program
			if i < len(a.Routines) {
				b.Routines[i], b.Symbols[querytest.Letter(b,
					rune(b.Routines[i].Name[0]))] = a.Routines[i], a.Symbols[querytest.Letter(a,
					rune(b.Routines[i].Name[0]))]
			}
		}
		q := DiffQuery{Hot: drawHotQuery(t,
			rapid.SampledFrom([]HotKind{Minimal, Maximal}).Draw(t, "kind")),
			Share: rapid.Bool().Draw(t, "share")}
		got, err := Diff(a, b, q)
		if err != nil {
			t.Fatal(err)
		}
		hot := map[string]bool{}
		for _, s := range []*wpp.Snapshot{a, b} {
			r, err := Hot(s, q.Hot)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Subpaths {
				hot[querytest.Spell(s, p.Symbols)] = true
			}
		}
		single := map[string]bool{}
		for _, c := range "abcdefg" {
			single[string(c)] = true
		}
		for _, part := range []struct {
			texts map[string]bool
			got   []Difference
		}{{single, got.Paths}, {hot, got.Subpaths}} {
			want := map[string]numbers{}
			for text := range part.texts {
				counts, costs, shares := [2]uint64{bruteCount(a, text),
					bruteCount(b, text)}, [2]uint64{}, [2]float64{}
				for i, s := range []*wpp.Snapshot{a, b} {
					if counts[i] > 0 {
						costs[i] = bruteCover(querytest.Streams(s), symbolCosts(s, q.Hot.Metric),
							[][]uint32{unspell(s, text)})
						shares[i] = Share(costs[i], [2]uint64{got.TotalA, got.TotalB}[i])
					}
				}
				changed := counts[0] != counts[1]
				if q.Share {
					changed = shares[0] != shares[1]
				}
				if changed {
					want[text] = numbers{counts, costs}
				}
			}
			have := map[string]numbers{}
			for _, d := range part.got {
				text := nameOf(&d, [2]*wpp.Snapshot{a, b})
				have[text] = numbers{[2]uint64{d.CountA, d.CountB}, [2]uint64{d.CostA, d.CostB}}
				if (d.Change == New) != (d.CountA == 0) || (d.Change == Gone) != (d.CountB == 0) {
					t.Fatalf("%+v", d)
				}
			}
			if diff := gocmp.Diff(want, have); diff != "" {
				t.Fatalf("brute force -, Diff +:\n%s", diff)
			}
		}
	})
}

func unspell(s *wpp.Snapshot, text string) (symbols []uint32) {
	for _, c := range text {
		symbols = append(symbols, querytest.Letter(s, c))
	}
	return symbols
}

func bruteCount(s *wpp.Snapshot, text string) (n uint64) {
	for _, stream := range querytest.Streams(s) {
		all := querytest.Spell(s, stream)
		for i := range all {
			if i+len(text) <= len(all) && all[i:i+len(text)] == text {
				n++
			}
		}
	}
	return n
}

// BenchmarkDiff compares each trace with what it would be had it ended after four fifths.
func BenchmarkDiff(b *testing.B) {
	shorter := make(map[*wpp.Snapshot]querytest.Trace)
	for _, tr := range querytest.Traces() {
		stream := tr.Flat.Threads[0].Grammar.Body(0)
		shorter[tr.Packed] = querytest.NewTrace(tr.Name, stream[:len(stream)/5*4])
	}
	ask := func(before, after *wpp.Snapshot) string {
		both := [2]*wpp.Snapshot{before, after}
		r, err := Diff(before, after, DiffQuery{Hot: DefaultHotQuery(), Top: 20})
		if err != nil {
			b.Fatal(err)
		}
		return fmt.Sprint(r.Found, differences(r.Paths, both), differences(r.Subpaths, both))
	}
	querytest.Compare(b, 4, func(s *wpp.Snapshot) string { return ask(shorter[s].Packed, s) },
		func(s *wpp.Snapshot) string { return ask(shorter[s].Flat, querytest.FlatOf(s)) })
}

// TestRoutinesWithoutEntries: routines whose entries are not known are distinguished by their
// order, by name and in two snapshots.
func TestRoutinesWithoutEntries(t *testing.T) {
	twins := func(text string) *wpp.Snapshot {
		s := querytest.Letters(text)
		s.Images[0].BuildID = []byte{1}
		for i := range s.Routines {
			s.Routines[i].Name, s.Routines[i].Entry = "f", 0
		}
		return s
	}
	both := [2]*wpp.Snapshot{twins("abb"), twins("aaaabb")}
	r, err := Diff(both[0], both[1],
		DiffQuery{Hot: HotQuery{MinLength: 2, MaxLength: 2, Metric: Executions}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Paths) != 1 || r.Paths[0].CountA != 1 || r.Paths[0].CountB != 4 ||
		nameOf(&r.Paths[0], both) != "f@0" {
		t.Errorf("%+v", r.Paths)
	}
}
