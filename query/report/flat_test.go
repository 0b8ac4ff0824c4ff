package report

import (
	"io"
	"testing"

	"wpptrace/compress/ops"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/compress/wpp/wpptest"
	"wpptrace/query"
	"wpptrace/query/profile"
	"wpptrace/query/querytest"
)

// inWindows is a snapshot as of a recording in windows.
func inWindows(s *wpp.Snapshot) *wpp.Snapshot {
	s.Figures.Windows, s.Figures.Sampled = 15, 0.0123
	s.Figures.SampledLeast, s.Figures.SampledMost = 0.0112, 0.0139
	return s
}

// samplesOfLeftOut is a snapshot with samples in a routine that is not traced.
func samplesOfLeftOut() *wpp.Snapshot {
	s := querytest.Compressor()
	p := &samples.Profile{Kernel: 3, Files: []samples.File{{Path: "/usr/bin/squeeze", Samples: 7,
		Routines: []samples.InRoutine{{Routine: 3, Samples: 6}}}}}
	s.Sections = append(s.Sections, p.Section())
	return s
}

// TestFlatGolden: routines by their share of the CPU time, where there are samples, else by that of
// instructions, or of paths.
func TestFlatGolden(t *testing.T) {
	for name, c := range map[string]struct {
		s    *wpp.Snapshot
		tids []int
		top  int
	}{
		"flat.txt":         {querytest.Compressor(), nil, 0},
		"flat-time.txt":    {inWindows(sampled()), nil, 0},
		"flat-thread.txt":  {sampled(), []int{4711}, 1},
		"flat-bare.txt":    {querytest.BareSymbols(t, "aaaabbbbaaaaccccaaaa"), nil, 0},
		"flat-leftout.txt": {samplesOfLeftOut(), nil, 0},
		"flat-nothing.txt": {&wpp.Snapshot{Figures: wpp.Figures{Command: []string{"sleep"}}}, nil, 0},
	} {
		r, err := profile.Flat(c.s, c.tids...)
		if err != nil {
			t.Fatal(err)
		}
		checkGolden(t, name, func(w io.Writer) error { return WriteFlat(w, c.s, r, c.top) })
	}
	s := inWindows(sampled())
	r, err := profile.Flat(s)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "flat.json", func(w io.Writer) error { return WriteFlatJSON(w, s, r, 2) })
}

// callbacks is a thread in which sub_3000 is called by main, behind a tail jump of another routine,
// by signals, and when nothing is known of what called it.
func callbacks() *wpp.Snapshot {
	s := querytest.Compressor()
	s.Symbols = []wpp.Symbol{
		{Routine: 2, Start: ops.StartEntry, End: ops.EndReturn, Blocks: []int{0}},
		{Routine: 0, Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0}},
		{Routine: 1, Start: ops.StartEntry, End: ops.EndTail, Blocks: []int{0}},
		{IsMark: true, Mark: ops.Handler},
		{Routine: 1, Path: 1, Start: ops.StartEntry, End: ops.EndCall, Blocks: []int{0}},
	}
	s.Threads = s.Threads[:1]
	s.Threads[0].Grammar = wpptest.GrammarOf(3, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 4, 0, 0)
	return s
}

func TestCallersGolden(t *testing.T) {
	s := callbacks()
	r, err := profile.CallersOf(s, "sub_3000")
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "callers.txt", func(w io.Writer) error { return WriteCallers(w, s, r, 0) })
	checkGolden(t, "callers.json", func(w io.Writer) error { return WriteCallersJSON(w, s, r, 0) })
	s = inWindows(querytest.InlinedCompressor())
	r, err = profile.CallersOf(s, "odd...")
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "callers-none.txt", func(w io.Writer) error { return WriteCallers(w, s, r, 1) })
}

// TestRecordingGolden: what a recording ends with.
func TestRecordingGolden(t *testing.T) {
	s := inWindows(sampled())
	flat, err := profile.Flat(s)
	if err != nil {
		t.Fatal(err)
	}
	hot, err := query.Hot(s, query.HotQuery{MinLength: 2, MaxLength: 100, MinCost: 1800,
		Metric: query.Instructions})
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "recording.txt", func(w io.Writer) error {
		return WriteRecording(w, s, flat, 2, hot, []string{"--lib libc.so.6 traces it too"})
	})
}
