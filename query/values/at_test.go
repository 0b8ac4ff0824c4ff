package values_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wet"
	"wpptrace/compress/wet/machine"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query/values"
)

// cutting is an oracle that knows nothing, and ends segments at some hits.
type cutting struct {
	cut    func() bool
	walker *wet.Walker
	log    wet.Log
	ended  []*wpp.Section
}

func (o *cutting) Begin(at wet.Place) (lost bool, err error) {
	o.log.Begin(at, &wet.Entry{})
	return false, nil
}

func (o *cutting) Site(at wet.Place, _ int, _ *machine.Machine) (lost bool, err error) {
	if o.cut() {
		o.ended = append(o.ended, o.log.Cut(o.walker).Sections(0)...)
	}
	return o.Begin(at)
}

func (o *cutting) Load(*wet.Load) (machine.Knowledge, bool) { return machine.Unknown, false }
func (o *cutting) Used(wet.Place, uint16, *machine.Machine) {}
func (o *cutting) Leaves(machine.Outcome, *machine.Machine) {}
func (o *cutting) Doubt()                                   {}

func (o *cutting) Result(at wet.Place, _ uint16, _ *machine.Machine) {
	o.log.Result(at, &wet.Recovery{})
}

func (o *cutting) Disagrees() {}

func (o *cutting) Resync(at wet.Place, _ *machine.Machine) (begins, lost bool, err error) {
	o.log.Recover(at, &wet.Recovery{})
	return true, false, nil
}

// drawSegments draws a snapshot with values in several segments, which begin within paths.
func drawSegments(t *rapid.T) *wpp.Snapshot {
	no := machine.Insn{Op: machine.NoOp, Len: 1}
	insns := []machine.Insn{no, no, no}
	routine := &wet.Routine{Blocks: []wet.Block{
		{Addr: 0x1000, Insns: insns, Sites: []wet.Site{{Insn: 1}}},
		{Addr: 0x1003, Insns: insns, Sites: []wet.Site{{Insn: 0}, {Insn: 2}}}}}
	code := wet.NewCode(func(int) *wet.Routine { return routine })
	s := &wpp.Snapshot{Images: make([]wpp.Image, 1),
		Symbols: []wpp.Symbol{{Blocks: []int{0}}, {Blocks: []int{0, 1}}, {Blocks: []int{1}}},
		Routines: []wpp.Routine{{Name: "f", Entry: 0x1000, Blocks: []wpp.Block{
			{Addr: 0x1000, Lengths: []byte{1, 1, 1}, Spans: []wpp.Span{{To: 2, Line: 1, Last: 1},
				{From: 2, To: 3, Line: 2, Last: 2}}},
			{Addr: 0x1003, Lengths: []byte{1, 1, 1}, Line: 2, Last: 2}}}},
		Files: []string{"f.c"}}
	stream := rapid.SliceOfN(rapid.Uint32Range(0, 2), 1, 20).Draw(t, "stream")
	o := &cutting{cut: func() bool { return rapid.IntRange(0, 2).Draw(t, "cut") == 0 }}
	w := wet.NewWalker(code, o, nil)
	o.walker = w
	err := w.Begin()
	for _, sym := range stream {
		if err == nil {
			err = w.Path(&wet.Path{Blocks: s.Symbols[sym].Blocks})
		}
		o.log.Walked()
		o.log.Ran(sym, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Threads = []wpp.Thread{{TID: 1, Grammar: wpptest.GrammarOf(stream...)}}
	s.Sections = slices.Concat([]*wpp.Section{code.Section()}, o.ended, o.log.Sections(0))
	return s
}

// TestEachOfSegments: however a thread is cut into segments, the executions that are asked for are
// those that a replay of all has, with their numbers; one that there is not is an error.
func TestEachOfSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSegments(t)
		q := &values.Question{Where: &values.Where{},
			Instance: rapid.Uint64Range(0, 4).Draw(t, "instance")}
		for _, addr := range rapid.SliceOfNDistinct(rapid.Uint64Range(0x1000, 0x1005), 1, 3,
			rapid.ID).Draw(t, "addresses") {
			q.Where.At = append(q.Where.At, values.Instruction{Addr: addr})
		}
		var want, got []string
		count := uint64(0)
		for e, err := range values.Instructions(s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			at := values.Instruction{Routine: e.Routine, Addr: e.Addr}
			if !slices.Contains(q.Where.At, at) {
				continue
			}
			if count++; q.Instance == 0 || q.Instance == count {
				want = append(want, fmt.Sprintf("%d: %d %x", count, e.Symbol, e.Addr))
			}
		}
		err := values.Each(s, q, func(n uint64, e *wet.Executed) error {
			got = append(got, fmt.Sprintf("%d: %d %x", n, e.Symbol, e.Addr))
			return nil
		})
		if isThere := count > 0 && count >= q.Instance; (err == nil) != isThere ||
			!slices.Equal(got, want) {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	})
}

// TestEachLineOfSegments: however a thread is cut into segments, the executions of a line are those
// that are worked out from all its paths.
func TestEachLineOfSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSegments(t)
		w, err := values.Find(s, rapid.SampledFrom([]string{"f.c:1", "f.c:2"}).Draw(t, "line"))
		if err != nil {
			t.Fatal(err)
		}
		all, err := values.FindExecution(s, &values.Question{Where: w})
		if err != nil {
			t.Skip("the line has not run")
		}
		var got, each []string
		for n := range all.Of {
			q := &values.Question{Where: w, Instance: n + 1}
			x, err := values.FindExecution(s, q)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, r := range x.Ran {
				want = append(want, fmt.Sprintf("%d: %d %x", n+1, r.At.Symbol, r.Addr))
			}
			got = got[:0]
			if err := values.Each(s, q, func(n uint64, e *wet.Executed) error {
				got = append(got, fmt.Sprintf("%d: %d %x", n, e.Symbol, e.Addr))
				return nil
			}); err != nil || !slices.Equal(got, want) {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
			each = append(each, want...)
		}
		q := &values.Question{Where: w}
		got = got[:0]
		if err := values.Each(s, q, func(n uint64, e *wet.Executed) error {
			got = append(got, fmt.Sprintf("%d: %d %x", n, e.Symbol, e.Addr))
			return nil
		}); err != nil || !slices.Equal(got, each) {
			t.Fatalf("got %q, %v, want %q", got, err, each)
		}
	})
}
