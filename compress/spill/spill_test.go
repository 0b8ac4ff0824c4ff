package spill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/store"
)

const alphabet = 50

// tables are those of bare symbols, of which those below alphabet exist from the beginning on.
func tables(from int) (to int, complete func() (*wpp.Snapshot, error)) {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "x"}},
		Routines: []wpp.Routine{{Name: "f", Paths: alphabet}}}
	for i := from; i < alphabet; i++ {
		s.Symbols = append(s.Symbols, wpp.Symbol{Path: uint64(i)})
	}
	return alphabet, func() (*wpp.Snapshot, error) { return s, nil }
}

// finished writes what was recorded of threads and reads it.
func finished(t interface{ Fatal(...any) }, r *Recording, path string,
	threads []*Thread) *wpp.Snapshot {
	_, complete := tables(0)
	s, _ := complete()
	for _, th := range threads {
		g, err := th.Copy()()
		if err != nil {
			t.Fatal(err)
		}
		s.Threads = append(s.Threads, wpp.Thread{TID: th.TID, Name: th.Name, Grammar: g})
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.Finish(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	got, err := store.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Threads that take turns, whatever is spilled of them and when, keep their streams.
func TestStreamsAreKept(t *testing.T) {
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		path := filepath.Join(dir, fmt.Sprint(run, ".wpp"))
		limit := rapid.Uint64Range(leastSpilled, 200_000)
		r := New(store.NewDraft(path),
			Limits{Thread: limit.Draw(t, "thread"), All: limit.Draw(t, "all")})
		r.Begin(tables)
		var threads []*Thread
		want, ended := map[int][]uint32{}, map[int]bool{}
		symbol := rapid.Uint32Range(0, alphabet-1)
		for tid := range rapid.IntRange(1, 3).Draw(t, "threads") {
			threads = append(threads, r.Thread(tid, "t"))
		}
		for range rapid.IntRange(0, 12).Draw(t, "turns") {
			i := rapid.IntRange(0, len(threads)-1).Draw(t, "whose")
			if ended[i] {
				continue
			}
			part := slices.Repeat(rapid.SliceOfN(symbol, 1, 40).Draw(t, "part"),
				rapid.IntRange(1, 200).Draw(t, "times"))
			for k := range part { // so that it hardly repeats itself
				part[k] = (part[k] + uint32(k*k)) % alphabet
			}
			want[i] = append(want[i], part...)
			if rapid.Bool().Draw(t, "one by one") {
				for _, sym := range part {
					threads[i].Append(sym, 1)
				}
			} else {
				threads[i].AppendAll(part)
			}
			if rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
				threads[i].End()
				ended[i] = true
			}
		}
		got := finished(t, r, path, threads)
		for i := range threads {
			if stream := slices.Collect(got.Threads[i].Grammar.Expand(0)); !slices.Equal(stream,
				want[i]) {
				t.Fatalf("thread %d has %d symbols, want %d", i, len(stream), len(want[i]))
			}
			if n, _, _ := threads[i].Size(); n != uint64(len(want[i])) {
				t.Fatalf("thread %d says it has %d symbols of %d", i, n, len(want[i]))
			}
		}
	})
}

// hardly is a stream that hardly repeats itself.
func hardly(n int) []uint32 {
	stream := make([]uint32, n)
	for i, x := 0, uint64(1); i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
		stream[i] = uint32(x>>33) % alphabet
	}
	return stream
}

// The largest grammar goes first; a limit for each thread is kept too; and what counts besides
// leaves less.
func TestLimits(t *testing.T) {
	const limit, symbols = 1 << 20, 200_000
	for name, limits := range map[string]Limits{
		"of all":        {All: 3 * limit},
		"of each":       {Thread: limit},
		"with the rest": {All: 7 * limit, Other: func() uint64 { return 4 * limit }},
	} {
		path := filepath.Join(t.TempDir(), "x.wpp")
		r := New(store.NewDraft(path), limits)
		r.Begin(tables)
		small, large := r.Thread(1, "small"), r.Thread(2, "large")
		small.AppendAll(hardly(2000))
		most := uint64(0)
		for part := range slices.Chunk(hardly(symbols), 10_000) {
			large.AppendAll(part)
			most = max(most, r.used)
		}
		if limits.Thread == 0 && most > 3*limit ||
			limits.Thread > 0 && large.bytes > limit+limit/4 {
			t.Errorf("%s: %d bytes", name, most)
		}
		if len(large.segments) == 0 || len(small.segments) > 0 {
			t.Errorf("%s: %d segments of the large thread, %d of the small one", name,
				len(large.segments), len(small.segments))
		}
		got := finished(t, r, path, []*Thread{small, large})
		if n := got.Threads[1].Grammar.Length(0); n != symbols {
			t.Errorf("%s: %d symbols", name, n)
		}
	}
}

// Without pressure there is no file, and no segment.
func TestNoPressure(t *testing.T) {
	dir := t.TempDir()
	r := New(store.NewDraft(filepath.Join(dir, "x.wpp")), Limits{All: 1 << 30})
	r.Begin(tables)
	th := r.Thread(1, "")
	th.AppendAll(hardly(100_000))
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 || len(th.segments) > 0 {
		t.Errorf("%v, %v, %d segments", entries, err, len(th.segments))
	}
}

// What cannot be written is an error, and nothing is spilled any more.
func TestSpillingFails(t *testing.T) {
	r := New(store.NewDraft(filepath.Join(t.TempDir(), "none", "x.wpp")),
		Limits{Thread: leastSpilled})
	r.Begin(tables)
	th := r.Thread(1, "")
	for range 10 {
		th.AppendAll(hardly(5000))
		r.wait()
	}
	if !errors.Is(r.Err(), os.ErrNotExist) {
		t.Errorf("error %v", r.Err())
	}
	g, err := th.Copy()()
	if err != nil || g.Length(0) != 50_000 {
		t.Errorf("what was recorded is lost: %v", err)
	}
}

// A recording whose tables alone take what it may use says so, and where what it has spilled is.
func TestTablesBeyondTheLimit(t *testing.T) {
	const limit = 1 << 20
	other := uint64(0)
	dir := t.TempDir()
	r := New(store.NewDraft(filepath.Join(dir, "x.wpp")),
		Limits{All: limit, Other: func() uint64 { return other }})
	r.Begin(tables)
	th := r.Thread(1, "t")
	th.AppendAll(hardly(200_000))
	if r.Err() != nil || r.segments == 0 {
		t.Fatalf("%d segments, %v", r.segments, r.Err())
	}
	other = limit
	th.AppendAll(hardly(2 * lookEvery))
	kept, err := filepath.Glob(filepath.Join(dir, ".x.wpp.*"))
	if err != nil || len(kept) != 1 || r.Err() == nil || !strings.HasSuffix(r.Err().Error(),
		"of that: allow more memory; what was recorded before is in "+kept[0]) {
		t.Errorf("%v; %v", r.Err(), kept)
	}
	if err := r.Abandon(); err != nil {
		t.Error(err)
	}
	if s, err := store.ReadFile(kept[0]); s == nil || !errors.Is(err, format.ErrTruncated) {
		t.Errorf("what was spilled cannot be read: %v", err)
	}
}

// Threads and segments take memory whatever becomes of their grammars.
func TestManyThreadsCount(t *testing.T) {
	const limit = 1 << 20
	r := New(store.NewDraft(filepath.Join(t.TempDir(), "x.wpp")), Limits{All: limit})
	r.Begin(tables)
	for tid := range limit / 100 {
		r.Thread(tid, "t")
	}
	r.threads[0].AppendAll(hardly(lookEvery))
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "allow more memory") {
		t.Errorf("%d threads within %d bytes: %v", len(r.threads), limit, err)
	}
}

// TestSegmentsOfSymbols: a stream is cut where a segment derives as much as it may, and whoever
// needs parts of it reads these alone.
func TestSegmentsOfSymbols(t *testing.T) {
	const most, symbols = 10_000, 50_000
	path := filepath.Join(t.TempDir(), "x.wpp")
	r := New(store.NewDraft(path), Limits{Symbols: most})
	r.Begin(tables)
	th := r.Thread(1, "t")
	for part := range slices.Chunk(hardly(symbols), lookEvery) {
		th.AppendAll(part)
	}
	got := finished(t, r, path, []*Thread{th})
	if n := got.Threads[0].Grammar.NumSegments(); n != 0 {
		t.Errorf("%d segments were not read at once", n)
	}
	parts, err := store.ReadParts(path)
	if err != nil {
		t.Fatal(err)
	}
	g := parts.Threads[0].Grammar
	if n := g.NumSegments(); n != symbols/most {
		t.Errorf("%d segments of %d symbols, want %d", n, most, symbols/most)
	}
	if !slices.Equal(slices.Collect(g.Expand(0)), hardly(symbols)) {
		t.Error("another stream")
	}
}
