//go:build linux && cgo

package valuetests

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wet"
	"wpptrace/compress/wpp"
	"wpptrace/decoder"
	"wpptrace/decoder/code"
	recording "wpptrace/decoder/values"
	"wpptrace/internal/record/source"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/truth/states"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan/planner"
	"wpptrace/query/report"
	"wpptrace/query/valuereport"
	"wpptrace/query/values"
)

// TestValuesOfRecordedRuns: of runs that were single-stepped before, what the kernel would have
// sent becomes a snapshot, which has the values of the truth.
func TestValuesOfRecordedRuns(t *testing.T) {
	for _, name := range states.Names() {
		t.Run(name, func(t *testing.T) {
			s, err := states.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			snapshot, routines := record(t, s)
			var text bytes.Buffer
			if err := report.Dump(&text, snapshot, report.AllValues, report.Whole()); err != nil {
				t.Fatal(err)
			}
			got, err := truth.ParseValues(&text, "")
			if err != nil {
				t.Fatal(err)
			}
			compare(t, got, s.Trace, routines)
			compareReferences(t, snapshot, s.Trace)
		})
	}
}

// TestInstancesOfARecordedRun: what is asked of single instructions is what the truth has of them.
func TestInstancesOfARecordedRun(t *testing.T) {
	sample, err := states.Load("values_one")
	if err != nil {
		t.Fatal(err)
	}
	s, _ := record(t, sample)
	where, err := values.Find(s, "one_less")
	if err != nil || len(where.At) != 1 {
		t.Fatalf("one_less is at %v: %v", where, err)
	}
	steps := slices.DeleteFunc(slices.Clone(sample.Trace.Threads[0].Values),
		func(s truth.Step) bool { return s.PC != where.At[0].Addr })
	var got []uint64
	question := &values.Question{Where: where}
	err = values.Each(s, question, func(n uint64, e *wet.Executed) error {
		if got = append(got, n); e.Addr != where.At[0].Addr {
			t.Errorf("instance %d is at %x", n, e.Addr)
		}
		for _, w := range steps[n-1].Written {
			if !slices.ContainsFunc(e.Written, func(r wet.Register) bool {
				return r.Number == w.Register && r.Value == w.Value
			}) {
				t.Errorf("instance %d wrote %v, and %v in the truth", n, e.Written, w)
			}
		}
		return nil
	})
	if err != nil || len(got) != len(steps) {
		t.Fatalf("%d executions, %d in the truth: %v", len(got), len(steps), err)
	}
	question.Instance = 3
	for _, form := range []struct {
		want  string
		write func(io.Writer) error
	}{
		{"\n3 1 ", func(w io.Writer) error { return valuereport.WriteInstances(w, s, question) }},
		{"\n3,1,", func(w io.Writer) error { return valuereport.WriteInstancesCSV(w, s, question) }},
		{`"instance":3,"thread":1,`, func(w io.Writer) error {
			return valuereport.WriteInstancesJSON(w, s, question)
		}},
		{" rdx: 1 times, 1 values\n", func(w io.Writer) error {
			return valuereport.WriteHistogram(w, s, question)
		}},
	} {
		var text bytes.Buffer
		if err := form.write(&text); err != nil || !strings.Contains(text.String(), form.want) {
			t.Errorf("%v: %q has no %q", err, &text, form.want)
		}
	}
}

// compareReferences fails the test unless the addresses that the snapshot's only thread accessed
// are those of the truth, in their order, but for those that are left out.
func compareReferences(t *testing.T, s *wpp.Snapshot, want *truth.Trace) {
	t.Helper()
	r, err := values.ReferencesOf(s)
	if err != nil {
		t.Fatal(err)
	}
	var all []uint64
	for i := range want.Threads[0].Values {
		step := &want.Threads[0].Values[i]
		for _, a := range slices.Concat(step.Reads, step.Writes) {
			all = append(all, a.Addr)
		}
	}
	n, at := 0, 0
	for symbol := range r.Trace.Threads[0].Grammar.Expand(0) {
		if r.Trace.Symbols[symbol].IsMark {
			continue
		}
		addr := r.List[symbol].Addr
		for at < len(all) && all[at] != addr {
			at++
		}
		if at == len(all) {
			t.Fatalf("reference %d, to %#x, is not among the truth's, or not in that order", n, addr)
		}
		n++
		at++
	}
	t.Logf("%d references of %d accesses, %d of the stack, %d unknown", n, len(all), r.Stack,
		r.Unknown)
	if n == 0 {
		t.Error("there are no references")
	}
}

// record makes a snapshot of a sample, as a recording does, and says what was traced.
func record(t *testing.T, sample *states.Sample) (*wpp.Snapshot, truth.Routines) {
	t.Helper()
	return recordIn(t, sample, 1<<20)
}

// recordIn is record with segments of some instructions.
func recordIn(t *testing.T, sample *states.Sample, segment uint64) (*wpp.Snapshot,
	truth.Routines) {
	t.Helper()
	path, err := sample.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	c, err := recovery.Recover(im)
	if err != nil {
		t.Fatal(err)
	}
	p, err := planner.Make(c, planner.Options{EveryRound: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loads.Make(p, loads.Options{})
	if err != nil {
		t.Fatal(err)
	}
	records, err := sample.Records(l)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	d, err := decoder.New(p, log)
	if err != nil {
		t.Fatal(err)
	}
	instructions := code.Of(p, nil)
	instructions.Place(0, sample.Trace.Bias)
	alphabet, grammar := &ops.Symbols{}, sequitur.NewFolding()
	recorder := recording.New(l, instructions, d, alphabet, nil)
	recorder.SetSegment(segment)
	var kept *recording.Thread
	var thread *decoder.Thread
	for _, record := range records {
		b, err := wire.ParseBatch(record)
		if err != nil {
			t.Fatal(err)
		}
		if b.HasStates() {
			recorder.Take(b)
			continue
		}
		if thread == nil {
			kept = recorder.Thread(b.Thread, b.Started,
				ops.NewRecorder(alphabet, grammar.AppendRun))
			thread = d.Thread(kept, true)
		}
		for i := range b.Len() {
			thread.Take(b.Event(i))
		}
	}
	thread.Close()
	kept.End()
	if err := kept.Err(); err != nil {
		t.Fatal(err)
	}
	id, _ := hex.DecodeString(im.BuildID)
	made := &wpp.Snapshot{Machine: im.Machine,
		Images:   []wpp.Image{{Name: im.Name, BuildID: id}},
		Threads:  []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(grammar), Ended: true}},
		Sections: recorder.Sections([]*recording.Thread{kept})()}
	var routines truth.Routines
	for _, r := range p.Routines {
		w := wpp.Routine{Name: r.Name, Symbol: r.Symbol, Entry: r.Addr, LeftOut: r.LeftOut,
			Paths: d.Paths(r.ID)}
		for _, x := range r.Ranges {
			w.Ranges = append(w.Ranges, wpp.Range{Lo: x[0], Hi: x[1]})
			routines = append(routines,
				truth.Routine{Start: x[0], End: x[1], Traced: r.Traced(), Name: r.Name})
		}
		made.Routines = append(made.Routines, w)
	}
	for i := range alphabet.Len() {
		made.Symbols = append(made.Symbols, symbol(t, alphabet.Meaning(uint32(i)), d, l))
	}
	slices.SortFunc(routines,
		func(a, b truth.Routine) int { return cmp.Compare(a.Start, b.Start) })
	source.NewTable(source.NewTroubles(log)).AddTo(made, p.Parts)
	return made, routines
}

func symbol(t *testing.T, m ops.Meaning, d *decoder.Decoder, l *loads.Plan) wpp.Symbol {
	t.Helper()
	if m.IsMark {
		return wpp.Symbol{IsMark: true, Mark: m.Mark, N: m.N}
	}
	p, err := d.Path(m.Routine, m.Path)
	if err != nil {
		t.Fatal(err)
	}
	s := wpp.Symbol{Routine: m.Routine, Path: m.Path, Start: p.Start, End: p.End, Blocks: p.Blocks,
		Skip: p.Skip}
	if p.Insns > 0 {
		last := &l.Base.Routines[m.Routine].Blocks[p.Blocks[len(p.Blocks)-1]]
		s.Cut = len(last.Insns) - p.Insns
	}
	return s
}
