package wire_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/bpf/wire"
)

func TestWordsSayWhatTheyWereMadeOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		site := rapid.IntRange(0, wire.MaxSites-1).Draw(t, "site")
		outcome := rapid.IntRange(0, 1).Draw(t, "outcome")
		cfa := rapid.Uint64Range(0, 1<<44-1).Draw(t, "cfa") << 3
		w := wire.MakeWitness(site, outcome, cfa)
		if w.Kind() != wire.Witness || w.Site() != site || w.Outcome() != outcome || w.CFA() != cfa {
			t.Fatalf("witness %d:%d at %x became %v", site, outcome, cfa, w)
		}
		place := wire.Place(rapid.IntRange(0, int(wire.Truncated)).Draw(t, "place"))
		address := rapid.Uint64Range(0, 1<<48-1).Draw(t, "address")
		for _, f := range []struct {
			w      wire.Word
			kind   wire.Kind
			resync bool
		}{{wire.MakeFrom(place, address), wire.From, false}, {wire.MakeResync(place, address), wire.From, true}, {wire.MakeEnd(place, address), wire.End, false}} {
			if f.w.Kind() != f.kind || f.w.Place() != place || f.w.Address() != address || f.w.Resync() != f.resync {
				t.Fatalf("place %d, address %x became %v", place, address, f.w)
			}
		}
		value := rapid.Uint64Range(0, 1<<60-1).Draw(t, "value")
		if w := wire.MakeCase(value); w.Kind() != wire.Case || w.Value() != value {
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
		0: wire.Witness, 7: wire.Witness, 8: wire.From, 9: wire.Case, 10: wire.Repeat, 11: wire.End, 12: wire.Register, 13: wire.Interrupt, 14: wire.Fault, 15: wire.Invalid,
	} {
		if got := wire.Word(top << 60).Kind(); got != want {
			t.Errorf("a word that begins with %d is of kind %d, want %d", top, got, want)
		}
	}
}

func TestWordsPrint(t *testing.T) {
	for _, c := range []struct {
		w    wire.Word
		want string
	}{
		{wire.MakeWitness(3, 1, 0x7ffc1000), "witness 3:1 cfa 7ffc1000"},
		{wire.MakeFrom(wire.Inside, 0x1234), "from 0:1234 resync false"},
		{wire.MakeResync(wire.Outside, 0), "from 1:0 resync true"},
		{wire.MakeCase(7), "case 7"},
		{wire.MakeRepeat(8), "repeat 8"},
		{wire.MakeEnd(wire.Inside, 0x99), "end 0:99"},
		{wire.MakeInterrupt(0x99), "interrupt 99"},
		{wire.MakeFaulted(wire.MakeInterrupt(0x99)), "interrupt 99 faulted"},
		{wire.MakeFault(0x7ffc1008), "fault 7ffc1008"},
		{wire.Word(15 << 60), "invalid f000000000000000"},
	} {
		if got := c.w.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// record makes a record of the ring buffer.
func record(count uint32, words ...wire.Word) []byte {
	b := make([]byte, 0, wire.BatchHeader+8*len(words))
	b = binary.LittleEndian.AppendUint32(b, 42)
	b = binary.LittleEndian.AppendUint32(b, count)
	for _, v := range []uint64{1, 2, 3, 4} { // started, sequence, hits, lost
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, uint64(w))
	}
	return b
}

func TestParseBatch(t *testing.T) {
	words := []wire.Word{wire.MakeFrom(wire.Outside, 0), wire.MakeWitness(1, 0, 64), wire.MakeRepeat(9)}
	b, err := wire.ParseBatch(append(record(3, words...), 1, 2, 3)) // padding is allowed
	if err != nil {
		t.Fatal(err)
	}
	if b.Thread != 42 || b.Started != 1 || b.Sequence != 2 || b.Hits != 3 || b.Lost != 4 {
		t.Errorf("header %+v", b)
	}
	if b.Len() != len(words) {
		t.Fatalf("%d words, want %d", b.Len(), len(words))
	}
	for i, w := range words {
		if b.Word(i) != w {
			t.Errorf("word %d is %v, want %v", i, b.Word(i), w)
		}
	}
	if n := b.Witnesses(); n != 10 {
		t.Errorf("the words stand for %d hits, want 10", n)
	}
}

func TestParseBatchRefuses(t *testing.T) {
	whole := record(2, wire.MakeCase(1), wire.MakeWitness(1, 0, 64))
	for _, c := range []struct {
		name   string
		record []byte
		want   string
	}{
		{"nothing", nil, "less than its header"},
		{"half a header", whole[:wire.BatchHeader-1], "less than its header"},
		{"half a word", whole[:len(whole)-1], "2 words do not fit"},
		{"more words than bytes", record(1<<31, wire.MakeCase(1)), "do not fit"},
		{"as many words as can be", record(1<<32 - 1), "do not fit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := wire.ParseBatch(c.record); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one that says %q", err, c.want)
			}
		})
	}
}

func FuzzParseBatch(f *testing.F) {
	whole := record(2, wire.MakeCase(1), wire.MakeWitness(1, 0, 64))
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	f.Add(record(1<<32 - 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := wire.ParseBatch(data)
		if err != nil {
			return
		}
		if wire.BatchHeader+8*b.Len() > len(data) {
			t.Fatalf("%d words of %d bytes", b.Len(), len(data))
		}
		for i := range b.Len() {
			if b.Word(i).String() == "" {
				t.Fatalf("word %d prints as nothing", i)
			}
		}
	})
}

func ExampleParseBatch() {
	b, err := wire.ParseBatch(record(2, wire.MakeFrom(wire.Inside, 0x1180), wire.MakeWitness(5, 1, 0x7ffc1000)))
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range b.Len() {
		fmt.Println(b.Word(i))
	}
	// Output:
	// from 0:1180 resync false
	// witness 5:1 cfa 7ffc1000
}
