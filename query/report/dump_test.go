package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query"
	"wpptrace/query/querytest"
	"wpptrace/query/rules"
)

func TestDumpEqualsExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		var want strings.Builder
		for i, stream := range querytest.Streams(s) {
			for _, sym := range stream {
				if p := &s.Symbols[sym]; p.IsMark {
					want.Write(appendMark(nil, p.Mark, p.N))
				}
				for addr := range s.Instructions(sym) {
					fmt.Fprintf(&want, "%d letters %x\n", s.Threads[i].TID, addr)
				}
			}
		}
		var got bytes.Buffer
		if err := Dump(&got, s, Insns, Whole()); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Fatalf("dump is\n%s\nwant\n%s", got.String(), want.String())
		}
	})
}

func TestDumpOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		s.Threads = s.Threads[:1]
		length := uint64(len(querytest.Streams(s)[0]))
		cut := rapid.Uint64Range(0, length).Draw(t, "cut")
		for _, form := range []Form{Insns, Blocks, Paths} {
			var whole, parts, back bytes.Buffer
			for _, err := range []error{
				Dump(&whole, s, form, Whole()),
				Dump(&parts, s, form, Part{To: cut}),
				Dump(&parts, s, form, Part{From: cut, To: length + 1}),
				Dump(&back, s, form, Part{To: length, Backward: true}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if parts.String() != whole.String() ||
				string(reverseLines(back.Bytes())) != whole.String() {
				t.Fatalf("%s: parts\n%s\nbackward\n%s\nwant\n%s", form, parts.String(),
					back.String(), whole.String())
			}
		}
	})
	for _, form := range []Form{Ops, Grammar, Dot} {
		err := Dump(io.Discard, querytest.Compressor(), form, Part{From: 1, To: 2})
		if err == nil || !strings.Contains(err.Error(),
			"there are parts only of insns, blocks and paths") {
			t.Error(err)
		}
	}
}

func TestDumpOfOneThread(t *testing.T) {
	var both, first, second bytes.Buffer
	s := querytest.Compressor()
	for out, tids := range map[*bytes.Buffer][]int{&both: nil, &first: {4711}, &second: {4712}} {
		if err := Dump(out, s, Paths, Whole(), tids...); err != nil {
			t.Fatal(err)
		}
	}
	if both.String() != first.String()+second.String() {
		t.Error("the threads' dumps do not make up the whole")
	}
	if second.Len() == 0 || strings.Contains(second.String(), "4711") {
		t.Errorf("dump of thread 4712: %q", second.String())
	}
}

func TestUnknownThread(t *testing.T) {
	s := querytest.Compressor()
	_, hot := query.Hot(s, query.HotQuery{MinLength: 1, MaxLength: 1, Metric: query.Executions,
		TIDs: []int{4711, 5}})
	_, frequencies := query.NewFrequencies(s, 5)
	for _, err := range []error{Dump(io.Discard, s, Insns, Whole(), 5), hot, frequencies} {
		const want = "select thread 5: the snapshot has threads 4711 4712"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestUnknownForm(t *testing.T) {
	for _, s := range []*wpp.Snapshot{querytest.Compressor(), {}} { // the latter has no threads
		err := Dump(io.Discard, s, "csv", Whole())
		const want = `dump as "csv": no such form: use one of [insns blocks paths ops grammar dot values symbols]`
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestWriteErrorsAreReported(t *testing.T) {
	s := querytest.Compressor()
	report, err := query.Hot(s, query.DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	writers := map[string]func(w io.Writer) error{
		"hot":       func(w io.Writer) error { return WriteHot(w, s, report) },
		"hot json":  func(w io.Writer) error { return WriteHotJSON(w, s, report) },
		"stat":      func(w io.Writer) error { return WriteStat(w, statOf(t, s)) },
		"stat json": func(w io.Writer) error { return WriteStatJSON(w, statOf(t, s)) },
		"routines":  func(w io.Writer) error { return WriteRoutines(w, s) },
		"path":      func(w io.Writer) error { return WritePath(w, s, "main#1") },
	}
	found, err := rules.Find(s, rules.FindQuery{Pattern: "main", First: 1, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	writers["find"] = func(w io.Writer) error { return WriteFind(w, s, found) }
	writers["find json"] = func(w io.Writer) error { return WriteFindJSON(w, s, found) }
	order, err := rules.PathOrder(s, "main", "main")
	if err != nil {
		t.Fatal(err)
	}
	writers["order"] = func(w io.Writer) error { return WriteOrder(w, s, order) }
	writers["order json"] = func(w io.Writer) error { return WriteOrderJSON(w, s, order) }
	context, err := query.ContextOf(s, "main", 2)
	if err != nil {
		t.Fatal(err)
	}
	writers["context"] = func(w io.Writer) error { return WriteContext(w, s, context, 3) }
	writers["context json"] = func(w io.Writer) error { return WriteContextJSON(w, s, context, 3) }
	changed := querytest.BuildOf(querytest.Letters("ba"), "x")
	other := querytest.BuildOf(querytest.Letters("abab"), "x")
	difference, err := query.Diff(other, changed, query.DiffQuery{Hot: query.DefaultHotQuery()})
	if err != nil {
		t.Fatal(err)
	}
	writers["diff"] = func(w io.Writer) error { return WriteDiff(w, other, changed, difference) }
	writers["diff json"] = func(w io.Writer) error {
		return WriteDiffJSON(w, other, changed, difference)
	}
	rules, err := rules.Check(s, []string{"never main"})
	if err != nil {
		t.Fatal(err)
	}
	writers["rules"] = func(w io.Writer) error { return WriteRules(w, s, rules) }
	writers["rules json"] = func(w io.Writer) error { return WriteRulesJSON(w, s, rules) }
	writers["figure 8"] = func(w io.Writer) error { return WriteFigure8(w, s) }
	writers["figure 9"] = func(w io.Writer) error { return WriteFigure9(w, s) }
	for _, form := range textForms() {
		writers["dump "+string(form)] = func(w io.Writer) error { return Dump(w, s, form, Whole()) }
	}
	for name, write := range writers {
		limit := querytest.LimitedWriter(10)
		if err := write(&limit); !errors.Is(err, querytest.ErrFull) {
			t.Errorf("%s: error %v, want %v", name, err, querytest.ErrFull)
		}
	}
}

func TestEndlessDumpStopsWithItsWriter(t *testing.T) {
	for _, form := range []Form{Insns, Blocks, Paths, Ops} {
		limit := querytest.LimitedWriter(1 << 20)
		if err := Dump(&limit, querytest.Doubling(t), form, Whole()); !errors.Is(err,
			querytest.ErrFull) {
			t.Errorf("%s: error %v, want %v", form, err, querytest.ErrFull)
		}
	}
}

func BenchmarkDumpInsns(b *testing.B) {
	s := querytest.Compressor()
	instructions := statOf(b, s).Instructions
	for b.Loop() {
		if err := Dump(io.Discard, s, Insns, Whole()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(instructions)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
}
