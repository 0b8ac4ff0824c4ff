package record

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"wpptrace/bpf/wire"
	"wpptrace/compress/wpp"
	"wpptrace/internal/testenv"
	"wpptrace/internal/traced"
	"wpptrace/loader/attach"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// offline returns a recording of a program that nothing is attached to.
func offline(t *testing.T) *Recorder {
	t.Helper()
	self, err := target.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(self.Close)
	f, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	p, err := traced.Load(f, "true", traced.Selection{})
	must(t, err)
	return newRecorder(t, Options{Process: self}, p, nil)
}

// batch makes a batch of a thread.
func batch(t *testing.T, id uint32, started, hits, lost uint64, events ...wire.Event) wire.Batch {
	t.Helper()
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(events)))
	for _, v := range []uint64{started, 0, hits, lost} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, w := range events {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	parsed, err := wire.ParseBatch(b)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// first returns the events that begin an activation which external code has called.
func first(p *plan.Plan) []wire.Event {
	for i := range p.Sites {
		if p.Sites[i].First {
			return []wire.Event{wire.MakeCaller(wire.Outside, 0), wire.MakeHit(i, 0, 0x7ffc1000)}
		}
	}
	return nil
}

// TestThreadsThatEnd: a program of 20,000 short threads does not have the tracer grow by what only
// threads that go on need.
func TestThreadsThatEnd(t *testing.T) {
	const threads, most = 20_000, 600 // bytes a thread
	r := offline(t)
	events := append(first(r.program.Plan), wire.MakeEnd(wire.Outside, 0))
	r.threads.take(batch(t, 1, 1, 1, 0, events...)) // tables that all share
	before := testenv.Heap()
	for i := range uint64(threads) {
		r.threads.take(batch(t, uint32(10+i%1000), 10+i, 1, 0, events...))
	}
	if grown := (testenv.Heap() - before) / threads; grown < most/6 || grown > most {
		t.Errorf("a thread that has ended takes %d bytes, most is %d", grown, most)
	}
	if len(r.threads.all) != threads+1 || len(r.threads.byID) > 1001 {
		t.Errorf("%d threads, %d by number", len(r.threads.all), len(r.threads.byID))
	}
	for _, th := range r.threads.all {
		if paths, _, _ := th.stream.Size(); th.decoder != nil || !th.ended || paths == 0 ||
			th.taken != 3 || th.received != 1 || th.hits != 1 {
			t.Fatalf("thread %d, started at %d: %+v", th.id, th.started, th)
		}
	}
}

// TestThreadsThatAreCounted: a path profile of them does not grow with their number, and forgets
// nothing that they did.
func TestThreadsThatAreCounted(t *testing.T) {
	const threads, most = 20_000, 5 // bytes a thread
	r := offline(t)
	r.threads.count(0)
	events := append(first(r.program.Plan), wire.MakeEnd(wire.Outside, 0))
	r.threads.take(batch(t, 1, 1, 1, 0, events...)) // tables that all share
	before := testenv.Heap()
	for i := range uint64(threads) {
		r.threads.take(batch(t, uint32(10+i%1000), 10+i, 1, 0, events...))
	}
	if grown := float64(testenv.Heap()-before) / threads; grown > most {
		t.Errorf("a thread that has ended takes %v bytes, most is %d", grown, most)
	}
	r.threads.take(batch(t, 5, 5, 1, 0, first(r.program.Plan)...)) // which goes on
	c := r.threads.counts()
	if len(r.threads.all) != 2 || len(r.threads.byID) != 1 || c.Threads != threads+2 {
		t.Errorf("%d threads, %d by number, %d counted", len(r.threads.all), len(r.threads.byID),
			c.Threads)
	}
	want := []uint64{threads + 2, threads + 1} // activations that were met, and paths
	if !slices.Equal(c.Of, want) {
		t.Errorf("counts are %d, want %d", c.Of, want)
	}
	var f wpp.Figures
	r.threads.addFigures(&f)
	if f.Hits != threads+2 || f.Events != 3*(threads+1)+2 || f.Anomalies != 0 {
		t.Errorf("%+v", f)
	}
}

// What a thread lost last is added to that thread, not to a later one with its number; one of which
// nothing came through has its own start too.
func TestLossesGoToTheirThreads(t *testing.T) {
	r := offline(t)
	events := first(r.program.Plan)
	end := wire.MakeEnd(wire.Outside, 0)
	r.threads.take(batch(t, 7, 100, 1, 0, events...)) // its end is lost
	r.threads.take(batch(t, 7, 300, 4, 3, append(events, end)...))
	r.threads.take(batch(t, 8, 200, 1, 0, append(events, end)...))
	for _, l := range []attach.Loss{{Thread: 7, Started: 100, Hits: 6, Lost: 5},
		{Thread: 7, Started: 300, Hits: 3, Lost: 3}, {Thread: 7, Started: 250, Hits: 9, Lost: 9}} {
		r.threads.addLoss(l)
	}
	type figures struct {
		id                        uint32
		started, hits, lost, gaps uint64
	}
	var got []figures
	for _, th := range r.threads.all {
		got = append(got, figures{th.id, th.started, th.hits, th.lost, th.gaps})
	}
	want := []figures{{7, 100, 6, 5, 1}, {8, 200, 1, 0, 0}, {7, 250, 9, 9, 1}, {7, 300, 4, 3, 1}}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// An earlier life of a thread's number that is met late, by what it has lost or left, once took the
// place of the one that lives.
func TestEarlierLifeIsMetLate(t *testing.T) {
	r := offline(t)
	events := first(r.program.Plan)
	self := uint32(os.Getpid())
	r.threads.take(batch(t, self, 300, 1, 0, events...))
	r.threads.addLoss(attach.Loss{Thread: self, Started: 100, Hits: 5, Lost: 5})
	r.threads.take(batch(t, self, 200, 1, 0, events...))
	strays, err := r.threads.strays()
	if err != nil || len(strays) != 2 || strays[0].started != 100 || strays[1].started != 200 {
		t.Errorf("%d strays, %v; want those that began at 100 and 200", len(strays), err)
	}
	if th := r.threads.byID[self]; th.started != 300 || !r.threads.lives(th) {
		t.Errorf("%d has the number, which began at %d", self, th.started)
	}
	for _, th := range strays {
		th.end()
	}
	if th, _ := r.threads.addLoss(attach.Loss{Thread: self, Started: 100, Hits: 9,
		Lost: 9}); th.amiss != 1 || th.lost != 5 {
		t.Errorf("a loss after the end: %+v", th)
	}
}

// A batch that does not follow the one before it, and one that says less or more than it counts,
// are no lossless record.
func TestBatchesThatDoNotAddUp(t *testing.T) {
	r := offline(t)
	events := first(r.program.Plan)
	for _, c := range []struct {
		name                 string
		sequence, hits, lost uint64
		gaps, anomalies      uint64
	}{
		{"the next one", 1, 2, 0, 0, 0},
		{"one after a loss", 2, 7, 5, 1, 0},
		{"one after another that is missing", 2, 2, 0, 1, 0},
		{"one whose hits are missing", 1, 3, 0, 0, 1},
		{"one that says more than there was", 1, 1, 0, 0, 1},
		{"one that begins again", 0, 1, 0, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			th := r.threads.begin(1, 1)
			th.take(batch(t, 1, 1, 1, 0, events...), &threads{plan: r.threads.plan})
			b := batch(t, 1, 1, c.hits, c.lost, events...)
			b.Sequence = c.sequence
			th.take(b, &threads{plan: r.threads.plan})
			if th.gaps != c.gaps || th.amiss != c.anomalies || th.received+th.lost != th.hits {
				t.Errorf("%d gaps, not %d; %d amiss, not %d; %d received, %d lost, %d hits",
					th.gaps, c.gaps, th.amiss, c.anomalies, th.received, th.lost, th.hits)
			}
		})
	}
}

// A loss that the kernel was asked for is one gap, not another one with the next batch; and nothing
// comes after a thread's end.
func TestBatchesAfterLossAndEnd(t *testing.T) {
	r := offline(t)
	events := first(r.program.Plan)
	r.threads.take(batch(t, 1, 1, 1, 0, events...))
	r.threads.addLoss(attach.Loss{Thread: 1, Started: 1, Hits: 6, Lost: 5})
	next := batch(t, 1, 1, 7, 5, append(events, wire.MakeEnd(wire.Outside, 0))...)
	next.Sequence = 2
	r.threads.take(next)
	th := r.threads.byID[1]
	if th.gaps != 1 || th.amiss != 0 || !th.ended {
		t.Errorf("%+v", th)
	}
	r.threads.take(batch(t, 1, 1, 8, 5, events...))
	if th.amiss != 1 || th.hits != 7 {
		t.Errorf("after its end: %+v", th)
	}
}
