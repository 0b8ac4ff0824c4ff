//go:build linux && cgo

package decoder_test

import (
	"maps"
	"slices"
	"testing"

	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
	"wpptrace/compress/ops"
	"wpptrace/decoder"
	"wpptrace/loader/plan"
)

// discard is a sink for operations that are counted alone.
type discard struct{ paths int }

func (d *discard) EnterRoutine(int, ops.Caller)   {}
func (d *discard) LeaveRoutine()                  {}
func (d *discard) Mark(ops.Mark, uint64)          {}
func (d *discard) NewPath(_ int, _, times uint64) { d.paths += int(times) }

// BenchmarkWords decodes the events of random walks through programs of the zoo.
func BenchmarkWords(b *testing.B) {
	list, err := planAll()
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(list)) {
		b.Run(name, func(b *testing.B) { benchmarkWords(b, list[name]) })
	}
}

func benchmarkWords(b *testing.B, p *plan.Plan) {
	events := walk(b, p)
	d, err := decoder.New(p, nil)
	if err != nil {
		b.Fatal(err)
	}
	sink := &discard{}
	decode := func() {
		t := d.Thread(sink, true)
		for _, w := range events {
			t.Take(w)
		}
	}
	decode() // fills the tables
	sink.paths = 0
	b.ReportAllocs()
	for b.Loop() {
		decode()
	}
	n := float64(b.N) * float64(len(events))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/word")
	b.ReportMetric(n/b.Elapsed().Seconds()/1e6, "Mwords/s")
	b.ReportMetric(float64(sink.paths)/n, "paths/word")
}

// walk returns the events of some walks, one after the other.
func walk(b *testing.B, p *plan.Plan) (events []wire.Event) {
	const most = 100_000
	for seed := uint64(0); len(events) < most && seed < most; seed++ {
		s := newProcess(p, habits{}, seed)
		s.thread = usermode.NewThread(7, 1, false)
		s.run(10_000)
		s.kill()
		s.thread.Free()
		for _, record := range s.machine.Records {
			batch, err := wire.ParseBatch(record)
			if err != nil {
				b.Fatal(err)
			}
			for i := range batch.Len() {
				events = append(events, batch.Event(i))
			}
		}
	}
	return events
}
