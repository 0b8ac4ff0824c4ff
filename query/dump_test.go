package query

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
)

func TestDumpEqualsExpansion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		var want strings.Builder
		for i, stream := range streams(s) {
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
		if err := Dump(&got, s, Insns); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() {
			t.Fatalf("dump is\n%s\nwant\n%s", got.String(), want.String())
		}
	})
}

func TestDumpOfParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.Threads = s.Threads[:1]
		length := uint64(len(streams(s)[0]))
		cut := rapid.Uint64Range(0, length).Draw(t, "cut")
		for _, form := range []Form{Insns, Blocks, Paths} {
			var whole, parts, back bytes.Buffer
			for _, err := range []error{
				Dump(&whole, s, form),
				DumpPart(&parts, s, form, Part{To: cut}),
				DumpPart(&parts, s, form, Part{From: cut, To: length + 1}),
				DumpPart(&back, s, form, Part{To: length, Backward: true}),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if parts.String() != whole.String() || string(reverseLines(back.Bytes())) != whole.String() {
				t.Fatalf("%s: parts\n%s\nbackward\n%s\nwant\n%s", form, parts.String(), back.String(), whole.String())
			}
		}
	})
	for _, form := range []Form{Ops, Grammar, Dot} {
		err := DumpPart(io.Discard, compressor(), form, Part{From: 1, To: 2})
		if err == nil || !strings.Contains(err.Error(), "there are parts only of insns, blocks and paths") {
			t.Error(err)
		}
	}
}

func TestDumpOfOneThread(t *testing.T) {
	var both, first, second bytes.Buffer
	s := compressor()
	for out, tids := range map[*bytes.Buffer][]int{&both: nil, &first: {4711}, &second: {4712}} {
		if err := Dump(out, s, Paths, tids...); err != nil {
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
	s := compressor()
	_, hot := Hot(s, HotQuery{MinLength: 1, MaxLength: 1, Metric: Executions, TIDs: []int{4711, 5}})
	_, frequencies := NewFrequencies(s, 5)
	for _, err := range []error{Dump(io.Discard, s, Insns, 5), hot, frequencies} {
		const want = "select thread 5: the snapshot has threads 4711 4712"
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestUnknownForm(t *testing.T) {
	for _, s := range []*wpp.Snapshot{compressor(), {}} { // the latter has no threads
		err := Dump(io.Discard, s, "csv")
		const want = `dump as "csv": no such form: use one of [insns blocks paths ops grammar dot symbols]`
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

var errFull = errors.New("no space left")

// A limitedWriter fails after so many bytes.
type limitedWriter int

func (w *limitedWriter) Write(p []byte) (int, error) {
	if n := int(*w); len(p) > n {
		*w = 0
		return n, errFull
	}
	*w -= limitedWriter(len(p))
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	s := compressor()
	report, err := Hot(s, DefaultHotQuery())
	if err != nil {
		t.Fatal(err)
	}
	writers := map[string]func(w io.Writer) error{
		"hot":       func(w io.Writer) error { return WriteHot(w, s, report) },
		"hot json":  func(w io.Writer) error { return WriteHotJSON(w, s, report) },
		"stat":      func(w io.Writer) error { return WriteStat(w, NewStat(s, 0)) },
		"stat json": func(w io.Writer) error { return WriteStatJSON(w, NewStat(s, 0)) },
		"routines":  func(w io.Writer) error { return WriteRoutines(w, s) },
		"path":      func(w io.Writer) error { return WritePath(w, s, "main#1") },
	}
	found, err := Find(s, FindQuery{Pattern: "main", First: 1, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	writers["find"] = func(w io.Writer) error { return WriteFind(w, s, found) }
	writers["find json"] = func(w io.Writer) error { return WriteFindJSON(w, s, found) }
	order, err := PathOrder(s, "main", "main")
	if err != nil {
		t.Fatal(err)
	}
	writers["order"] = func(w io.Writer) error { return WriteOrder(w, s, order) }
	writers["order json"] = func(w io.Writer) error { return WriteOrderJSON(w, s, order) }
	context, err := ContextOf(s, "main", 2)
	if err != nil {
		t.Fatal(err)
	}
	writers["context"] = func(w io.Writer) error { return WriteContext(w, s, context, 3) }
	writers["context json"] = func(w io.Writer) error { return WriteContextJSON(w, s, context, 3) }
	other := buildOf(letters("abab"), "x")
	difference, err := Diff(other, buildOf(letters("ba"), "x"), DiffQuery{Hot: DefaultHotQuery()})
	if err != nil {
		t.Fatal(err)
	}
	writers["diff"] = func(w io.Writer) error { return WriteDiff(w, difference) }
	writers["diff json"] = func(w io.Writer) error { return WriteDiffJSON(w, difference) }
	rules, err := CheckRules(s, []string{"never main"})
	if err != nil {
		t.Fatal(err)
	}
	writers["rules"] = func(w io.Writer) error { return WriteRules(w, s, rules) }
	writers["rules json"] = func(w io.Writer) error { return WriteRulesJSON(w, s, rules) }
	writers["figure 8"] = func(w io.Writer) error { return WriteFigure8(w, s) }
	writers["figure 9"] = func(w io.Writer) error { return WriteFigure9(w, s) }
	for _, form := range textForms() {
		writers["dump "+string(form)] = func(w io.Writer) error { return Dump(w, s, form) }
	}
	for name, write := range writers {
		limit := limitedWriter(10)
		if err := write(&limit); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v, want %v", name, err, errFull)
		}
	}
}

// doubling is a grammar of a few rules that derives 2^60 paths, and then its mark.
func doubling(t testing.TB) *wpp.Snapshot {
	s := letters("a#")
	s.Threads[0].Grammar = repeated(t, 59, []uint32{wpp.RuleSymbol(1), 1}, []uint32{0, 0})
	return s
}

// repeated is a grammar with a start rule whose rule 1 derives a body, again and again: as often as
// 2 to the power of a number of doublings.
func repeated(t testing.TB, doublings int, start, body []uint32) *wpp.Grammar {
	bodies := [][]uint32{start}
	for r := range doublings {
		bodies = append(bodies, slices.Repeat([]uint32{wpp.RuleSymbol(r + 2)}, 2))
	}
	g, err := wpp.NewGrammar(append(bodies, body))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEndlessDumpStopsWithItsWriter(t *testing.T) {
	for _, form := range []Form{Insns, Blocks, Paths, Ops} {
		limit := limitedWriter(1 << 20)
		if err := Dump(&limit, doubling(t), form); !errors.Is(err, errFull) {
			t.Errorf("%s: error %v, want %v", form, err, errFull)
		}
	}
}

func BenchmarkDumpInsns(b *testing.B) {
	s := compressor()
	instructions := NewStat(s, 0).Instructions
	for b.Loop() {
		if err := Dump(io.Discard, s, Insns); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(instructions)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mlines/s")
}
