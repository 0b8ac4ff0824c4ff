package record

import (
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/overlapped"
	"wpptrace/compress/wpp/pathprofile"
	"wpptrace/decoder"
	"wpptrace/internal/overlapping"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/attach"
	"wpptrace/loader/paths/overlap"
)

// BenchmarkPipeline measures what the consumer of a recording does with the events of real
// programs, on one core: decoding alone, with the alphabet, with how activations began besides,
// with the counts of a path profile, with those of overlapping paths of degree 2 besides, and all
// that a recording keeps, with the grammar, and the grammar alone. The stages take turns; figures
// are medians of some rounds, per event.
func BenchmarkPipeline(b *testing.B) {
	for _, real := range zoo.Busy() {
		b.Run(real.Name, func(b *testing.B) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(b, err)
			}
			program, events := recordEvents(b, append([]string{path}, real.Args...), real.Stdin)
			for b.Loop() {
				measurePipeline(b, program, events)
			}
		})
	}
}

// TestCountsOfTheSameEvents: of the same events, a path profile counts what a grammar derives.
func TestCountsOfTheSameEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("it traces a process")
	}
	program, events := recordEvents(t, []string{"bash", "--norc", "-c",
		"f() { [ $1 -gt 0 ] && f $(($1 - 1)); }; f 9; for i in 1 2 3; do x=${x/a/$i}; done"}, "")
	decode := func(sink ops.Sink) {
		d, err := decoder.New(program.Plan, nil)
		must(t, err)
		thread := d.Thread(sink, true)
		for _, w := range events {
			thread.Take(w)
		}
		thread.Close()
	}
	var whole, counted ops.Symbols
	grammar, counter := sequitur.NewFolding(), pathprofile.NewCounter(&counted)
	decode(ops.NewRecorder(&whole, grammar.AppendRun))
	decode(counter)
	want, got := map[ops.Meaning]uint64{}, map[ops.Meaning]uint64{}
	for sym := range wpp.FromSequitur(grammar).Expand(0) {
		m := whole.Meaning(sym)
		m.N = 0 // marks are counted by their kind
		want[m]++
	}
	for sym, n := range counter.Counts().Of {
		got[counted.Meaning(uint32(sym))] += n
	}
	if !maps.Equal(want, got) || len(got) < 100 {
		t.Errorf("%d different paths and marks, want %d", len(got), len(want))
	}
	if total := grammar.Length(); counter.Total() != total {
		t.Errorf("%d paths and marks, want %d", counter.Total(), total)
	}
	d, err := decoder.New(program.Plan, nil)
	must(t, err)
	const degree = 2
	overlaps := overlapping.NewCounter(degree, &ops.Symbols{}, program.Plan, d)
	thread := d.Thread(overlaps.Thread(), true)
	for _, w := range events {
		thread.Take(w)
	}
	thread.Close()
	profile, err := overlaps.Profile()
	must(t, err)
	extensionsHaveNumbers(t, program, profile)
}

// extensionsHaveNumbers checks that the overlapping graph of each routine has what was counted.
func extensionsHaveNumbers(t *testing.T, program *traced.Program, p *overlapped.Profile) {
	t.Helper()
	if len(p.Extensions) < 100 || len(p.Counts) < len(p.Extensions)/2 {
		t.Errorf("%d extensions, %d overlapping paths", len(p.Extensions), len(p.Counts))
	}
	for _, x := range p.Extensions {
		g, err := overlap.Of(program.Plan.Routines[x.Routine].Routine)
		must(t, err)
		n, err := g.Number(p.Degree)
		must(t, err)
		numbers, err := n.From(x.Blocks[0])
		if x.Loop >= 0 {
			numbers, err = n.Loop(x.Loop)
		}
		must(t, err)
		number, err := numbers.Encode(x.Blocks)
		must(t, err)
		back, err := numbers.Decode(number)
		if err != nil || !slices.Equal(back.Blocks, x.Blocks) {
			t.Fatalf("%+v has the number %d, which is %+v, %v", x, number, back, err)
		}
	}
}

// discard is a sink for operations that nobody wants.
type discard struct{}

func (discard) EnterRoutine(int, ops.Caller) {}
func (discard) LeaveRoutine()                {}
func (discard) NewPath(int, uint64, uint64)  {}
func (discard) Mark(ops.Mark, uint64)        {}

func measurePipeline(b *testing.B, program *traced.Program, events []wire.Event) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	d, err := decoder.New(program.Plan, nil)
	if err != nil {
		b.Fatal(err)
	}
	decode := func(sink ops.Sink) {
		t := d.Thread(sink, true)
		for _, w := range events {
			t.Take(w)
		}
		t.Close()
	}
	var symbols []uint32
	// It fills the decoder's tables as well.
	decode(ops.NewRecorder(&ops.Symbols{},
		func(s uint32,
			n uint64) {
			symbols = append(symbols, slices.Repeat([]uint32{s}, int(n))...)
		}))
	alphabet := &ops.Symbols{}
	overlaps := overlapping.NewCounter(2, alphabet, program.Plan, d)
	both := func() ops.Sink {
		return overlapping.Sink(alphabet, pathprofile.NewCounter(alphabet), overlaps)
	}
	began := testenv.ThreadTime()
	decode(both()) // which finds the shapes of routines as well
	b.ReportMetric(float64(testenv.ThreadTime()-began)/1e6, "ms:first")
	b.ReportMetric(float64(len(events)), "events")
	stages := []struct {
		name string
		run  func()
		took []time.Duration
	}{
		{name: "decode", run: func() { decode(discard{}) }},
		{name: "decode+map",
			run: func() { decode(ops.NewRecorder(&ops.Symbols{}, func(uint32, uint64) {})) }},
		{name: "decode+map+entries", run: func() {
			kept := &ops.Symbols{}
			decode(overlapping.NewEntries(kept, program.Plan, d).Recorder(func(uint32, uint64) {}))
		}},
		{name: "decode+count", run: func() { decode(pathprofile.NewCounter(&ops.Symbols{})) }},
		{name: "decode+count+overlap", run: func() { decode(both()) }},
		{name: "decode+map+entries+sequitur", run: func() {
			kept, g := &ops.Symbols{}, sequitur.New()
			decode(overlapping.NewEntries(kept, program.Plan, d).Recorder(g.AppendRun))
		}},
		{name: "sequitur", run: func() {
			g := sequitur.New()
			for _, s := range symbols {
				g.Append(s)
			}
		}},
	}
	const rounds = 5
	for range rounds {
		for i := range stages {
			began := testenv.ThreadTime()
			stages[i].run()
			stages[i].took = append(stages[i].took, testenv.ThreadTime()-began)
		}
	}
	for _, s := range stages {
		slices.Sort(s.took)
		b.ReportMetric(float64(s.took[rounds/2])/float64(len(events)), "ns/event:"+s.name)
	}
	b.ReportMetric(float64(len(symbols))/float64(len(events)), "symbols/event")
}

// recordEvents runs a program of one thread and returns the events that its probes make.
func recordEvents(b testing.TB, argv []string, input string) (*traced.Program, []wire.Event) {
	c, err := zoo.Start(argv, input)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Process.Close()
	exe, err := c.Process.Executable()
	if err != nil {
		b.Fatal(err)
	}
	defer exe.Close()
	p, err := traced.Load(exe, c.Process.Name, traced.Selection{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := attach.Load(c.Process, p.Image, p.Plan, attach.Options{Ring: attach.DefaultRing})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(s.Attach(exe), s.Enable(true)); err != nil {
		b.Fatal(err)
	}
	c.Release()
	var events []wire.Event
	for ended := false; !ended; {
		ended = c.Process.Wait(0)
		for {
			batch, err := s.Read(time.Now().Add(tick))
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := range batch.Len() {
				events = append(events, batch.Event(i))
			}
		}
	}
	if m, err := s.Counters().Metrics(); err != nil || m != (attach.Metrics{}) {
		b.Fatalf("metrics %+v, %v", m, err)
	}
	return p, events
}
