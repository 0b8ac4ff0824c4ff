package pathprofile

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

func TestSection(t *testing.T) {
	want := &Counts{Of: []uint64{3, 0, Most}, Threads: 2, Runs: 1}
	s := &wpp.Snapshot{Symbols: make([]wpp.Symbol, 3), Sections: []*wpp.Section{want.Section()}}
	got, err := Of(s)
	if diff := cmp.Diff(want, got); err != nil || diff != "" || !IsProfile(s) {
		t.Errorf("%v %s", err, diff)
	}
	other := &wpp.Snapshot{Symbols: s.Symbols[:2], Sections: s.Sections}
	if _, err := Of(other); err == nil {
		t.Error("of other symbols")
	}
	other = &wpp.Snapshot{Symbols: s.Symbols, Sections: s.Sections,
		Threads: []wpp.Thread{{Grammar: wpptest.GrammarOf(1)}}}
	if _, err := Of(other); err == nil {
		t.Error("beside a grammar")
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil || IsProfile(&wpp.Snapshot{}) {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// FuzzOf: whatever a section says, there is one count for each symbol.
func FuzzOf(f *testing.F) {
	for _, m := range []*PathProfileSection{
		{Count: []uint64{1, math.MaxUint64}, Threads: 3, Runs: 2}, {Count: []uint64{1}}, {},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &wpp.Snapshot{Symbols: make([]wpp.Symbol, 2),
			Sections: []*wpp.Section{wpp.NewSection(Kind, data)}}
		if c, err := Of(s); err == nil && len(c.Of) != len(s.Symbols) {
			t.Fatalf("%+v", c)
		}
	})
}

// A Counter counts what a Recorder puts into the grammars of several threads that take turns.
func TestCountsAreThoseOfTheGrammars(t *testing.T) {
	type operation struct {
		thread      int
		isMark      bool
		routine     int
		path, times uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		const threads = 3
		var grammars [threads]*sequitur.Grammar
		var recorders [threads]ops.Sink
		var recorded, counted ops.Symbols
		for i := range grammars {
			grammars[i] = sequitur.NewFolding()
			recorders[i] = ops.NewRecorder(&recorded, grammars[i].AppendRun)
		}
		counter := NewCounter(&counted)
		list := rapid.SliceOf(rapid.Custom(func(t *rapid.T) operation {
			return operation{rapid.IntRange(0, threads-1).Draw(t, "thread"), rapid.Bool().Draw(t,
				"mark"), rapid.IntRange(0, 2).Draw(t, "routine"), rapid.Uint64Range(0, 2).Draw(t,
				"path"), rapid.Uint64Range(1, 1<<40).Draw(t, "times")}
		})).Draw(t, "operations")
		for _, o := range list {
			for _, sink := range []ops.Sink{recorders[o.thread], counter} {
				if o.isMark {
					sink.Mark(ops.Mark(o.routine), o.path)
				} else {
					sink.NewPath(o.routine, o.path, o.times)
				}
			}
		}
		want, got := map[ops.Meaning]uint64{}, map[ops.Meaning]uint64{}
		for _, g := range grammars {
			g := wpp.FromSequitur(g)
			for r := range g.Rules() {
				for _, v := range g.Body(r) {
					if !wpp.IsRule(v) {
						m := recorded.Meaning(v)
						m.N = 0
						want[m] += g.Uses(r)
					}
				}
			}
		}
		for sym, n := range counter.Counts() {
			got[counted.Meaning(uint32(sym))] += n
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A counter near its end stops there, and symbols that others have added to the alphabet have run
// nowhere.
func TestCounterStops(t *testing.T) {
	var alphabet ops.Symbols
	c := NewCounter(&alphabet)
	for range 1 << 10 {
		c.NewPath(0, 7, ops.MostTimes)
	}
	c.counts[0] = Most - 5
	c.NewPath(0, 7, 5)
	alphabet.Symbol(1, 0)
	if got := c.Counts(); !slices.Equal(got, []uint64{Most, 0}) {
		t.Error(got)
	}
	c.NewPath(0, 7, 1)
	c.Mark(ops.Gap, 1)
	c.Mark(ops.Gap, 2)
	if got := c.Counts(); !slices.Equal(got, []uint64{Most, 0, 2}) {
		t.Error(got)
	}
}
