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
	want := &Counts{Of: []uint64{3, 0, Most}, Threads: 2, Runs: 1,
		Clusters: []Cluster{{7, []uint64{1}}, {1, []uint64{2, 0, 5}}}}
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
	for name, c := range map[string]*Counts{"many threads": {Of: want.Of, Threads: Most},
		"many clusters": {Of: want.Of, Clusters: make([]Cluster, mostClusters+1)},
		"many windows":  {Of: want.Of, Clusters: []Cluster{{Windows: Most}}},
		"more in them":  {Of: want.Of, Clusters: []Cluster{{1, []uint64{4}}}}} {
		s.Sections = []*wpp.Section{c.Section()}
		if _, err := Of(s); err == nil {
			t.Error(name)
		}
	}
	if got, err := Of(&wpp.Snapshot{}); got != nil || err != nil || IsProfile(&wpp.Snapshot{}) {
		t.Errorf("without a section: %v, %v", got, err)
	}
}

// FuzzOf: whatever a section says, there is one count for each symbol.
func FuzzOf(f *testing.F) {
	for _, m := range []*PathProfileSection{
		{Count: []uint64{1, math.MaxUint64}, Threads: 3, Runs: 2}, {Count: []uint64{1}}, {},
		{Count: []uint64{4, 5}, Cluster: []*PathProfileSection_Cluster{
			{Windows: 2, Count: []uint64{4}}, {Windows: 1, Count: []uint64{0, 5}}}},
		{Count: []uint64{4, 5}, Cluster: []*PathProfileSection_Cluster{{Count: []uint64{5}}}},
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
		c, err := Of(s)
		if err != nil {
			return
		}
		if len(c.Of) != len(s.Symbols) {
			t.Fatalf("%+v", c)
		}
		for _, x := range c.Clusters {
			for sym, n := range x.Of {
				if n > c.Of[sym] {
					t.Fatalf("%+v", c)
				}
			}
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
		for sym, n := range counter.Counts().Of {
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
	if got := c.Counts().Of; !slices.Equal(got, []uint64{Most, 0}) {
		t.Error(got)
	}
	c.NewPath(0, 7, 1)
	c.Mark(ops.Gap, 1)
	c.Mark(ops.Gap, 2)
	if got := c.Counts().Of; !slices.Equal(got, []uint64{Most, 0, 2}) {
		t.Error(got)
	}
}

// What windows have counted may be more, together, than a counter can say.
func TestWindowsOfACounterThatStops(t *testing.T) {
	var alphabet ops.Symbols
	c := NewCounter(&alphabet)
	for range 2 {
		c.NewPath(0, 7, ops.MostTimes)
		c.counts[0] = Most - 5
		c.EndWindow()
	}
	want := c.Counts()
	if want.Of[0] != Most || len(want.Clusters) != 2 {
		t.Fatalf("%+v", want)
	}
	got, err := Of(&wpp.Snapshot{Symbols: make([]wpp.Symbol, 1),
		Sections: []*wpp.Section{want.Section()}})
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// However many windows there are, their clusters are few, in their order, and add up to the counts.
func TestClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var alphabet ops.Symbols
		c := NewCounter(&alphabet)
		var want []Cluster // of a window each
		window := Cluster{Windows: 1}
		for range rapid.IntRange(0, 1000).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
				c.EndWindow()
				if len(window.Of) > 0 {
					want = append(want, window)
				}
				window = Cluster{Windows: 1}
				continue
			}
			path := rapid.Uint64Range(0, 4).Draw(t, "path")
			c.NewPath(0, path, 1)
			sym := alphabet.Symbol(0, path)
			window.Of = sum(window.Of, append(make([]uint64, sym), 1))
		}
		got := c.Counts()
		if len(want) > 0 && len(window.Of) > 0 {
			want = append(want, window)
		}
		if len(want) == 0 {
			if len(got.Clusters) > 0 {
				t.Fatalf("clusters without a window: %v", got.Clusters)
			}
			return
		}
		if n := len(got.Clusters); n > mostClusters || n < min(len(want), mostClusters/2) {
			t.Fatalf("%d clusters of %d windows", n, len(want))
		}
		var all []uint64
		for _, x := range got.Clusters {
			var part []uint64
			for range x.Windows {
				part = sum(part, want[0].Of)
				want = want[1:]
			}
			part, x.Of = sum(part, make([]uint64, 5)), sum(x.Of, make([]uint64, 5))
			if !slices.Equal(part, x.Of) {
				t.Fatalf("a cluster has %v, want %v", x.Of, part)
			}
			all = sum(all, part)
		}
		if len(want) > 0 || !slices.Equal(all, sum(make([]uint64, 5), got.Of)) {
			t.Fatalf("%d windows are missing; %v, want %v", len(want), got.Of, all)
		}
	})
}
