//go:build linux && cgo

package bpf_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/bpf"
	"wpptrace/bpf/usermode"
	"wpptrace/bpf/wire"
)

func TestBatchIsSentWhenItIsFull(t *testing.T) {
	r := newRig(t, false)
	for i := range uint64(usermode.BatchEvents) {
		if len(r.Records) != 0 {
			t.Fatalf("sent after %d events", i)
		}
		r.hit(plain, stack+16*i)
	}
	if len(r.Records) != 1 {
		t.Fatalf("%d records after %d events, want 1", len(r.Records), usermode.BatchEvents)
	}
	r.hit(plain, stack)
	r.Exit(r.thread, base+0x10, &usermode.Registers{}, 0)
	for i, want := range []wire.Batch{{Thread: 42, Started: 7, Hits: usermode.BatchEvents},
		{Thread: 42, Started: 7, Sequence: 1, Hits: usermode.BatchEvents + 1}} {
		b, err := wire.ParseBatch(r.Records[i])
		if err != nil {
			t.Fatal(err)
		}
		if b.Thread != want.Thread || b.Started != want.Started || b.Sequence != want.Sequence ||
			b.Hits != want.Hits || b.Lost != 0 {
			t.Errorf("batch %d: %+v, want %+v", i, b, want)
		}
	}
	events := r.events(t)
	if got, want := events[len(events)-1], wire.MakeEnd(wire.Inside, 0x10); got != want {
		t.Errorf("the last event is %v, want %v", got, want)
	}
}

// TestSignals: where a handler comes is reported, and at the end of a thread whether it runs, if no
// event has come of it.
func TestSignals(t *testing.T) {
	const signal, blocked = 11, 1<<10 | 1<<20
	comes := append(registers(), wire.MakeInterrupt(0x777))
	others := make([]wire.Event, len(wire.Registers))
	for i := range others {
		others[i] = wire.MakeRegister(0)
	}
	ends := []wire.Event{wire.MakeEnd(wire.Outside, 0)}
	within := slices.Concat(registers(), []wire.Event{wire.MakeCaller(wire.Handler, 0x777)}, ends)
	for _, c := range []struct {
		name    string
		before  func(r *rig)
		blocked uint64
		want    []wire.Event
	}{
		{"in it", func(r *rig) { r.Signal(r.thread, base+0x777, &interrupted, signal, 0) }, blocked,
			slices.Concat(comes, within)},
		{"in that of the last signal", func(r *rig) {
			r.Signal(r.thread, base+0x99, &usermode.Registers{}, signal+1, 0)
			r.Signal(r.thread, base+0x777, &interrupted, signal, 0)
		}, blocked, slices.Concat(others, []wire.Event{wire.MakeInterrupt(0x99)}, comes, within)},
		{"in one that has interrupted it", func(r *rig) {
			r.Signal(r.thread, base+0x777, &interrupted, signal, 0)
			r.Signal(r.thread, outside, &usermode.Registers{}, signal+1, 1<<(signal-1))
		}, blocked | 1<<signal, slices.Concat(comes, within)},
		{"after it has returned",
			func(r *rig) { r.Signal(r.thread, base+0x777, &interrupted, signal, 0) },
			blocked &^ (1 << (signal - 1)), slices.Concat(comes, ends)},
		{"where all signals are blocked",
			func(r *rig) { r.Signal(r.thread, base+0x777, &interrupted, signal, 0) },
			^uint64(1<<8 | 1<<18), slices.Concat(comes, ends)},
		{"in one of code elsewhere",
			func(r *rig) { r.Signal(r.thread, outside, &interrupted, signal, 0) }, blocked,
			[]wire.Event{wire.MakeEnd(wire.Killed, 0)}},
		{"in one of what was called", func(r *rig) {
			r.Memory.Set(interrupted.General[4], base+0x2000)
			r.Signal(r.thread, outside, &interrupted, signal, 0)
		}, blocked, append(registers(), wire.MakeEnd(wire.ReturnsToImage, 0x2000))},
		{"in none of what was called", func(r *rig) {
			r.Memory.Set(interrupted.General[4], base+0x2000)
			r.Signal(r.thread, outside, &interrupted, signal, 0)
		}, 0, ends},
		{"in none", func(*rig) {}, ^uint64(0) >> 1, ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			c.before(r)
			r.Exit(r.thread, outside, &usermode.Registers{}, c.blocked)
			r.expect(t, c.want...)
		})
	}
}

// TestSignalBetweenRepeats: a handler comes between two hits of the same, which are not one repeat.
func TestSignalBetweenRepeats(t *testing.T) {
	r := newRig(t, false)
	event := wire.MakeHit(plain, 0, stack)
	r.hit(plain, stack)
	r.hit(plain, stack)
	r.Signal(r.thread, base+0x777, &interrupted, 11, 0)
	r.hit(plain, stack)
	r.expect(t, slices.Concat([]wire.Event{event, wire.MakeRepeat(1)}, registers(),
		[]wire.Event{wire.MakeInterrupt(0x777), event})...)
}

// TestFault: one in other code is reported, between repeats too.
func TestFault(t *testing.T) {
	r := newRig(t, false)
	event := wire.MakeHit(plain, 0, stack)
	r.hit(plain, stack)
	r.hit(plain, stack)
	r.Fault(r.thread, stack-64)
	r.hit(plain, stack)
	r.expect(t, event, wire.MakeRepeat(1), wire.MakeFault(stack-64), event)
}

// TestFaulted: of an instruction of the image that has faulted that is said where its handler
// comes, and where the thread ends by it.
func TestFaulted(t *testing.T) {
	r := newRig(t, false)
	r.hit(plain, stack)
	r.Faulted(r.thread, base+0x777, &interrupted)
	r.Exit(r.thread, base+0x777, &interrupted, 0)
	r.expect(t, slices.Concat([]wire.Event{wire.MakeHit(plain, 0, stack)}, registers(),
		[]wire.Event{wire.MakeFaulted(wire.MakeInterrupt(0x777))},
		registers(), []wire.Event{wire.MakeFaulted(wire.MakeEnd(wire.Inside, 0x777))})...)
}

// TestEndInAHandlerWithEvents: what a handler's own events have reported is not reported again at
// the end.
func TestEndInAHandlerWithEvents(t *testing.T) {
	const signal = 11
	r := newRig(t, false)
	r.Signal(r.thread, base+0x777, &interrupted, signal, 0)
	r.Memory.Set(trap, 0x0f0000000fc0c748)
	r.returns(stack, trap)
	r.Memory.SetSignalFrame(stack, base+0x777, &interrupted)
	r.hit(first, stack)
	r.Exit(r.thread, outside, &usermode.Registers{}, 1<<(signal-1))
	r.expect(t, slices.Concat(registers(), []wire.Event{wire.MakeInterrupt(0x777)}, registers(),
		[]wire.Event{wire.MakeCaller(wire.Handler, 0x777), wire.MakeHit(first, 0, stack),
			wire.MakeEnd(wire.Outside, 0)})...)
}

// TestNothingIsSentOfNothing: a thread that has said nothing since sends no empty batch.
func TestNothingIsSentOfNothing(t *testing.T) {
	r := newRig(t, false)
	r.hit(plain, stack)
	r.Drain(r.thread)
	r.Drain(r.thread)
	if len(r.Records) != 1 {
		t.Errorf("%d records, want 1", len(r.Records))
	}
}

// TestRestIsSentOnce: a thread that ends on one processor while it is drained on another is handed
// over by one of them, its events whole and once.
func TestRestIsSentOnce(t *testing.T) {
	drain := func(m *usermode.Machine, thread *usermode.Thread) { m.Drain(thread) }
	exit := func(m *usermode.Machine, thread *usermode.Thread) {
		m.Exit(thread, base+0x10, &usermode.Registers{}, 0)
	}
	for _, c := range []struct {
		name          string
		first, second func(*usermode.Machine, *usermode.Thread)
		events        int
	}{{"drained, then ends", drain, exit, 1},
		{"ends, then drained", exit, drain, 1 + len(wire.Registers) + 1}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			other := usermode.New(sites, calls, base, size)
			r.Output = func([]byte) bool {
				c.second(other, r.thread)
				return true
			}
			r.hit(plain, stack)
			c.first(r.Machine, r.thread)
			if len(other.Records) > 0 {
				t.Errorf("the second sent %d batches while the first was at it", len(other.Records))
			}
			if events := r.events(t); len(events) != c.events || events[0] != wire.MakeHit(plain, 0,
				stack) {
				t.Errorf("events %v", events)
			}
		})
	}
}

// TestRestIsKept: what a thread has left where the ring buffer has no room is kept elsewhere, and
// nothing overtakes it.
func TestRestIsKept(t *testing.T) {
	const hits = usermode.BatchEvents - 1 // and no room for how it ends: two batches
	for _, c := range []struct {
		name          string
		room, keeping bool
		keep          bool
		output, kept  []uint64 // sequences
		lost          uint64
	}{
		{"room", true, false, true, []uint64{0, 1}, nil, 0},
		{"no room", false, false, true, nil, []uint64{0, 1}, 0},
		{"room, but rests before it", true, true, true, nil, []uint64{0, 1}, 0},
		{"no room at all", false, false, false, nil, nil, hits},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			for i := range uint64(hits) {
				r.hit(plain, stack-16*i)
			}
			var output, kept []uint64
			into := func(list *[]uint64, room bool) func([]byte) bool {
				return func(record []byte) bool {
					b, err := wire.ParseBatch(record)
					if err != nil {
						t.Fatal(err)
					}
					if room {
						*list = append(*list, b.Sequence)
					}
					return room
				}
			}
			r.Output, r.Keep, r.Keeping = into(&output, c.room), into(&kept, c.keep), c.keeping
			r.Exit(r.thread, base+0x10, &usermode.Registers{}, 0)
			if !slices.Equal(output, c.output) || !slices.Equal(kept, c.kept) {
				t.Errorf("batches %v in the ring buffer, %v kept: want %v and %v", output, kept,
					c.output, c.kept)
			}
			if lost := r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS]; lost != c.lost {
				t.Errorf("%d hits lost, want %d", lost, c.lost)
			}
		})
	}
}

func TestUnknownSiteIsCounted(t *testing.T) {
	r := newRig(t, false)
	r.hit(uint32(len(sites)), stack)
	r.expect(t)
	if r.Metrics[bpf.TracerMetricMETRIC_NO_SITE] != 1 {
		t.Error("the hit of no site was not counted")
	}
}

// TestEventAfterALossStandsAlone: what was remembered is forgotten with a lost batch.
func TestEventAfterALossStandsAlone(t *testing.T) {
	r := newRig(t, false)
	r.returns(stack, base+0x2000)
	r.returns(stack+48, outside)
	r.hit(first, stack)
	r.Output = func([]byte) bool { return false }
	r.Drain(r.thread)
	r.Output = func([]byte) bool { return true }
	r.hit(first, stack)
	r.expect(t, wire.MakeResync(wire.Inside, 0x2000), wire.MakeResync(wire.Outside, 0),
		wire.MakeHit(first, 0, stack))
	if diff := cmp.Diff(bpf.TracerLoss{Hits: 1, Lost: 1}, r.Losses[42],
		cmp.Comparer(func(a, b bpf.TracerLoss) bool { return a == b })); diff != "" {
		t.Errorf("loss differs (-want +got):\n%s", diff)
	}
}

// TestLossesAddUp: whatever is refused, hits = received + lost, batch by batch and at the end.
func TestLossesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRig(t, rapid.Bool().Draw(t, "midRun"))
		for i := range uint64(64) {
			r.returns(stack+16*i, []uint64{base + 0x1000, base + 0x2000, outside}[i%3])
		}
		refuse := rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "refuse")
		batches := 0
		r.Output = func([]byte) bool {
			batches++
			return !refuse[batches%len(refuse)]
		}
		hits := uint64(rapid.IntRange(0, 2000).Draw(t, "hits"))
		sequence := rapid.SliceOfN(rapid.IntRange(0, 255), 1, 64).Draw(t, "sequence")
		for i := range hits {
			v := uint64(sequence[i%uint64(len(sequence))])
			r.hit(uint32(v%3), stack+16*(v>>3))
		}
		r.Drain(r.thread)
		var received, lost, next uint64
		for _, record := range r.Records {
			b, err := wire.ParseBatch(record)
			if err != nil {
				t.Fatal(err)
			}
			if b.Lost == lost && b.Sequence != next {
				t.Fatalf("batch %d follows batch %d without a loss", b.Sequence, next)
			}
			next, lost = b.Sequence+1, b.Lost
			received += b.Received()
			if received+lost != b.Hits {
				t.Fatalf("batch %d: %d received + %d lost are not %d hits", b.Sequence, received,
					lost, b.Hits)
			}
		}
		if l, ok := r.Losses[42]; ok {
			lost = l.Lost
		}
		if received+lost != hits {
			t.Fatalf("%d received + %d lost are not %d hits", received, lost, hits)
		}
		if n := r.Metrics[bpf.TracerMetricMETRIC_LOST_HITS]; n != lost {
			t.Fatalf("%d lost hits counted, %d lost", n, lost)
		}
	})
}

// TestChainTornByALoss: when a batch is refused in the middle of what a hit says, the next one must
// not begin with the rest of it: half a chain names wrong callers, and a hit without its case
// goes an unknown way.
func TestChainTornByALoss(t *testing.T) {
	for _, c := range []struct {
		name   string
		midRun bool
		site   uint32
		fill   uint64 // events in the batch before the hit
	}{
		{"between two callers", false, first, usermode.BatchEvents - 1},
		{"between the chain and its witness", false, first, usermode.BatchEvents - 3},
		{"between the case and its witness", false, table, usermode.BatchEvents - 1},
		{"within a resync", true, plain, usermode.BatchEvents},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.midRun)
			r.returns(stack, base+0x1000)
			callers := uint64(3)
			if c.midRun {
				callers = usermode.BatchEvents + 3
			}
			for i := uint64(1); i < callers-1; i++ {
				r.returns(stack+32*i, base+0x1000)
			}
			r.returns(stack+32*(callers-1), outside)
			if !c.midRun {
				for i := range c.fill {
					r.hit(plain, stack-16*(i+1))
				}
			}
			refused := 0
			r.Output = func([]byte) bool { refused++; return refused > 1 }
			r.hit(c.site, stack, register(6, 5), flags(1))
			var want []wire.Event
			for range callers - 1 {
				want = append(want, wire.MakeResync(wire.Inside, 0x1000))
			}
			want = append(want, wire.MakeResync(wire.Outside, 0))
			if c.site == table {
				want = append(want, wire.MakeCaptured(5))
			}
			r.expect(t, append(want, wire.MakeHit(int(c.site), 0, stack))...)
		})
	}
}
