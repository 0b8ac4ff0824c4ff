package record

import (
	"wpptrace/bpf/wire"
	"wpptrace/compress/spill"
	"wpptrace/decoder"
	"wpptrace/decoder/values"
)

// A thread is the record of one thread. A program may have any number of them one after the other:
// one that has ended keeps its figures and its grammar, in a form that does not grow, alone.
type thread struct {
	id       uint32
	name     string
	decoder  *decoder.Thread // nil: it has ended, or the recording has
	stream   *spill.Thread   // nil: paths are counted
	values   *values.Thread  // nil: none are recorded
	started  uint64          // CLOCK_BOOTTIME, ns
	batches  uint64          // sent, those that were lost included,
	skipped  bool            // but for some of which it is known otherwise that they were lost
	taken    uint64          // events
	received uint64          // witnesses
	hits     uint64
	lost     uint64
	gaps     uint64
	amiss    uint64         // batches whose hits are not those received and lost
	ended    bool           // its end was received
	fault    *decoder.Fault // by which it has ended; nil: by none
	stepped  uint64         // of the received, on single-stepped instructions
	left     uint64         // events taken when its last window ended
	windows  []uint64       // that have ended in which it ran, by number
}

// take decodes a batch of the thread. One that does not add up with those before it is an anomaly,
// and no path runs on across it.
func (t *thread) take(b wire.Batch, counts *threads) {
	if t.decoder == nil {
		t.amiss++
		return
	}
	if b.Lost > t.lost || b.Sequence != t.batches && !t.skipped {
		t.gap(b.Lost-min(b.Lost, t.lost), b.Hits-min(b.Hits, b.Received()))
	}
	t.skipped = false
	t.batches = b.Sequence + 1
	t.hits = b.Hits
	t.taken += uint64(b.Len())
	for i := range b.Len() {
		t.count(t.decoder.Take(b.Event(i)), counts)
	}
	if t.received+t.lost != t.hits {
		t.amiss++
		t.received = t.hits - min(t.hits, t.lost)
		t.interrupt(0, t.hits)
	}
	if t.decoder.Ended() {
		t.ended = true
		if f, ok := t.decoder.Fault(); ok {
			t.fault = &f
		}
		t.end()
	}
}

// gap marks that hits were lost. There had been so many of the thread, these included, before what
// comes next.
func (t *thread) gap(lost, hits uint64) {
	t.interrupt(lost, hits)
	t.lost += lost
	t.gaps++
}

func (t *thread) interrupt(lost, hits uint64) {
	t.decoder.Gap(lost)
	if t.values != nil {
		t.values.Gap(hits)
	}
}

// leave marks that what the thread does from here on is not known, unless that is marked already: a
// window has ended.
func (t *thread) leave(window uint64) {
	if t.taken > t.left {
		t.interrupt(0, t.hits)
		t.left = t.taken
		t.windows = append(t.windows, window)
	}
}

func (t *thread) count(hits decoder.Hits, counts *threads) {
	if hits.Count == 0 {
		return
	}
	t.received += hits.Count
	if hits.Stepped {
		t.stepped += hits.Count
	}
	counts.countSite(hits.Site, hits.Count)
}

// end lets go of what only a thread that goes on needs.
func (t *thread) end() {
	t.decoder.Close()
	if t.stream != nil {
		t.stream.End()
	}
	if t.values != nil {
		t.values.End()
	}
	t.decoder = nil
}
