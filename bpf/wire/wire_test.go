package wire_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf/wire"
)

func TestEventsSayWhatTheyWereMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := rapid.IntRange(0, wire.MaxSites-1).Draw(t, "site")
		outcome := rapid.IntRange(0, 1).Draw(t, "outcome")
		cfa := rapid.Uint64Range(0, 1<<44-1).Draw(t, "cfa") << 3
		w := wire.MakeHit(site, outcome, cfa)
		if w.Kind() != wire.Hit || w.Site() != site || w.Outcome() != outcome || w.CFA() != cfa {
			t.Fatalf("witness %d:%d at %x became %v", site, outcome, cfa, w)
		}
		place := wire.Origin(rapid.IntRange(0, int(wire.Truncated)).Draw(t, "place"))
		address := rapid.Uint64Range(0, 1<<48-1).Draw(t, "address")
		for _, f := range []struct {
			w      wire.Event
			kind   wire.Kind
			resync bool
		}{{wire.MakeCaller(place, address), wire.Caller, false},
			{wire.MakeResync(place, address), wire.Caller, true}, {wire.MakeEnd(place, address),
				wire.End, false}} {
			if f.w.Kind() != f.kind || f.w.Origin() != place || f.w.Address() != address ||
				f.w.Resync() != f.resync {
				t.Fatalf("place %d, address %x became %v", place, address, f.w)
			}
		}
		value := rapid.Uint64Range(0, 1<<60-1).Draw(t, "value")
		if w := wire.MakeCaptured(value); w.Kind() != wire.Captured || w.Value() != value {
			t.Fatalf("case %d became %v", value, w)
		}
		if w := wire.MakeRegister(value); w.Kind() != wire.Register || w.Value() != value {
			t.Fatalf("register %d became %v", value, w)
		}
		if w := wire.MakeRepeat(value); w.Kind() != wire.Repeat || w.Value() != value {
			t.Fatalf("repeat %d became %v", value, w)
		}
	})
}

func TestKinds(t *testing.T) {
	for top, want := range map[uint64]wire.Kind{
		0: wire.Hit, 7: wire.Hit, 8: wire.Caller, 9: wire.Captured, 10: wire.Repeat, 11: wire.End,
		12: wire.Register, 13: wire.Interrupt, 14: wire.Fault, 15: wire.Invalid,
	} {
		if got := wire.Event(top << 60).Kind(); got != want {
			t.Errorf("an event that begins with %d is of kind %d, want %d", top, got, want)
		}
	}
}

func TestEventsPrint(t *testing.T) {
	for _, c := range []struct {
		w    wire.Event
		want string
	}{
		{wire.MakeHit(3, 1, 0x7ffc1000), "hit 3:1 cfa 7ffc1000"},
		{wire.MakeCaller(wire.Inside, 0x1234), "caller 0:1234 resync false"},
		{wire.MakeResync(wire.Outside, 0), "caller 1:0 resync true"},
		{wire.MakeCaptured(7), "captured 7"},
		{wire.MakeRepeat(8), "repeat 8"},
		{wire.MakeEnd(wire.Inside, 0x99), "end 0:99"},
		{wire.MakeInterrupt(0x99), "interrupt 99"},
		{wire.MakeFaulted(wire.MakeInterrupt(0x99)), "interrupt 99 faulted"},
		{wire.MakeFault(0x7ffc1008), "fault 7ffc1008"},
		{wire.Event(15 << 60), "invalid f000000000000000"},
	} {
		if got := c.w.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// record makes a record of the ring buffer.
func record(count uint32, events ...wire.Event) []byte {
	b := make([]byte, 0, wire.BatchHeader+8*len(events))
	b = binary.LittleEndian.AppendUint32(b, 42)
	b = binary.LittleEndian.AppendUint32(b, count)
	for _, v := range []uint64{1, 2, 3, 4} { // started, sequence, hits, lost
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, w := range events {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

func TestParseBatch(t *testing.T) {
	events := []wire.Event{wire.MakeCaller(wire.Outside, 0), wire.MakeHit(1, 0, 64),
		wire.MakeRepeat(9)}
	b, err := wire.ParseBatch(append(record(3, events...), 1, 2, 3)) // padding is allowed
	if err != nil {
		t.Fatal(err)
	}
	if b.Thread != 42 || b.Started != 1 || b.Sequence != 2 || b.Hits != 3 || b.Lost != 4 {
		t.Errorf("header %+v", b)
	}
	if b.Len() != len(events) {
		t.Fatalf("%d events, want %d", b.Len(), len(events))
	}
	for i, w := range events {
		if b.Event(i) != w {
			t.Errorf("event %d is %v, want %v", i, b.Event(i), w)
		}
	}
	if n := b.Received(); n != 10 {
		t.Errorf("the events stand for %d hits, want 10", n)
	}
}

func TestParseBatchRefuses(t *testing.T) {
	whole := record(2, wire.MakeCaptured(1), wire.MakeHit(1, 0, 64))
	for _, c := range []struct {
		name   string
		record []byte
		want   string
	}{
		{"nothing", nil, "less than its header"},
		{"half a header", whole[:wire.BatchHeader-1], "less than its header"},
		{"half an event", whole[:len(whole)-1], "2 events do not fit"},
		{"more events than bytes", record(1<<30, wire.MakeCaptured(1)), "do not fit"},
		{"more states than bytes", record(wire.StatesRecord|2, wire.MakeCaptured(1)), "do not fit"},
		{"as many events as can be", record(1<<32 - 1), "do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := wire.ParseBatch(c.record); err == nil || !strings.Contains(err.Error(),
				c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

func FuzzParseBatch(f *testing.F) {
	whole := record(2, wire.MakeCaptured(1), wire.MakeHit(1, 0, 64))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(record(1<<32 - 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := wire.ParseBatch(data)
		if err != nil {
			return
		}
		if wire.BatchHeader+8*b.Len() > len(data) {
			t.Fatalf("%d events of %d bytes", b.Len(), len(data))
		}
		for i := range b.Len() {
			if b.Event(i).String() == "" {
				t.Fatalf("event %d prints as nothing", i)
			}
		}
	})
}

func ExampleParseBatch() {
	b, err := wire.ParseBatch(record(2, wire.MakeCaller(wire.Inside, 0x1180),
		wire.MakeHit(5, 1, 0x7ffc1000)))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range b.Len() {
		fmt.Println(b.Event(i))
	}
	// Output:
	// caller 0:1180 resync false
	// hit 5:1 cfa 7ffc1000
}
