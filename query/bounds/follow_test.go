package bounds

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/entries"
	"wpptrace/compress/wpp/overlapped"
)

// byPointer is a recording in which routine 0 calls routine 1 through a pointer, five times.
func byPointer(t *testing.T, e entries.Counts) *Model {
	t.Helper()
	routine := wpp.Routine{Blocks: []wpp.Block{{Lengths: []byte{1}},
		{Addr: 1, Lengths: []byte{1}}}, Ranges: []wpp.Range{{Hi: 2}}}
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/made"}},
		Routines: []wpp.Routine{routine, routine}}
	s.Routines[1].Entry = 2
	s.Symbols = []wpp.Symbol{{Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0}},
		{Path: 1, Start: ops.StartCall, End: ops.EndReturn, Blocks: []int{1}},
		{Routine: 1, Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0, 1}}}
	g := sequitur.New()
	for range 5 {
		for _, sym := range []uint32{0, 2, 1} {
			g.Append(sym)
		}
	}
	s.Threads = []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}
	if e != nil {
		s.Sections = append(s.Sections, e.Section())
	}
	p, err := Follow(s, []overlapped.Shape{{}, {Routine: 1}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(s, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCallsThroughPointers: they make pairs where it is known that all activations of the callee
// began there directly. Where some did, the place has no bounds; where that is not known, it is
// none. The truth of another recording is so far known, too.
func TestCallsThroughPointers(t *testing.T) {
	call := entries.Call{Callee: 1}
	recordings := map[string]entries.Counts{
		"all":  {call: {Traced: 5}},
		"none": {call: {External: 5}},
		"some": {call: {Traced: 3, External: 2}},
		"old":  nil,
	}
	answers := func(m *Model) (list []string) {
		for a := range m.Answers(0) {
			list = append(list, fmt.Sprint(a.Kind, " ", a.Flow, " ", a.LeftOut))
		}
		return list
	}
	some := overlapped.Mixed.String()
	for name, want := range map[string][]string{
		"all":  {"call {5 5 5 0} ", "return {5 5 5 0} "},
		"none": nil,
		"some": {"call {0 0 0 0} " + some, "return {0 0 0 0} " + some},
		"old":  nil,
	} {
		m := byPointer(t, recordings[name])
		m.TakeTruth(m)
		if diff := cmp.Diff(want, answers(m)); diff != "" {
			t.Errorf("%s were direct: %s", name, diff)
		}
	}
	const old = "the other recording does not say how activations began there"
	for name, want := range map[string][]string{
		"none": {"call {5 5 0 1} ", "return {5 5 0 1} "}, // another run, in which it was not
		"some": {"call {0 0 0 0} in the other recording: " + some,
			"return {0 0 0 0} in the other recording: " + some},
		"old": {"call {0 0 0 0} " + old, "return {0 0 0 0} " + old},
	} {
		m := byPointer(t, recordings["all"])
		m.TakeTruth(byPointer(t, recordings[name]))
		if diff := cmp.Diff(want, answers(m)); diff != "" {
			t.Errorf("against one in which %s were: %s", name, diff)
		}
	}
}
