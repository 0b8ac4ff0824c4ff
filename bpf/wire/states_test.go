package wire_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"wpptrace/bpf/wire"
)

// states is a record of words.
func states(words ...uint64) []byte {
	data := make([]byte, wire.BatchHeader)
	binary.LittleEndian.PutUint32(data[4:], wire.StatesRecord|uint32(len(words)))
	for _, w := range words {
		data = binary.LittleEndian.AppendUint64(data, w)
	}
	return data
}

func words(data []byte) (list []uint64) {
	for ; len(data) >= 8; data = data[8:] {
		list = append(list, binary.LittleEndian.Uint64(data))
	}
	return list
}

func readStates(record []byte) (list []wire.State, err error) {
	b, err := wire.ParseBatch(record)
	if err != nil {
		return nil, err
	}
	for s, err := range b.States() {
		if err != nil {
			return list, err
		}
		list = append(list, s)
	}
	return list, nil
}

func TestStatesAreReadAsTheyWereAppended(t *testing.T) {
	word := rapid.Uint64()
	state := rapid.Custom(func(t *rapid.T) wire.State {
		s := wire.State{
			Site:        rapid.IntRange(0, wire.MaxSites-1).Draw(t, "site"),
			Outcome:     rapid.IntRange(0, 1).Draw(t, "outcome"),
			Hash:        rapid.Uint32().Draw(t, "hash"),
			Flags:       rapid.Uint8Max(127).Draw(t, "flags"),
			Ordinal:     rapid.Uint64Max(1<<46-1).Draw(t, "ordinal"),
			Whole:       rapid.Bool().Draw(t, "whole"),
			Left:        rapid.Bool().Draw(t, "left"),
			Interrupted: rapid.Bool().Draw(t, "interrupted"),
			FailedReads: rapid.Uint16().Draw(t, "failed"),
		}
		if s.Whole {
			s.Registers = rapid.SliceOfN(word, 17, 17).Draw(t, "registers")
		}
		if n := rapid.IntRange(0, 128).Draw(t, "words"); n > 0 {
			s.Words = rapid.SliceOfN(word, n, n).Draw(t, "words")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(state, 1, 4).Draw(t, "states")
		var data []byte
		for i := range want {
			data = wire.AppendState(data, &want[i])
		}
		record := states(words(data)...)
		got, err := readStates(record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("states differ (-want +got):\n%s", diff)
		}
		if b, _ := wire.ParseBatch(record); !b.HasStates() || b.Len() != 0 || b.Received() != 0 {
			t.Error("a record of states has events")
		}
	})
}

func TestStatesThatAreNotWhole(t *testing.T) {
	const whole, failed = 1 << 48, 1 << 49
	one := words(wire.AppendState(nil, &wire.State{Site: 3, Words: []uint64{1, 2}}))
	for _, c := range []struct {
		name   string
		record []byte
		before int // states that are
		want   string
	}{
		{"half a header", states(append(slices.Clone(one), 0)...), 1, "1 words are less"},
		{"no registers", states(whole, 0, 1), 0, "3 words are less"},
		{"no words", states(3<<32, 0, 1, 2), 0, "4 words are less"},
		{"no mask", states(1<<32|failed, 0, 1), 0, "3 words are less"},
		{"a bit that has no meaning", states(1<<60, 0), 0, "its header is 0x1000000000000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := readStates(c.record)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(list) != c.before {
				t.Errorf("%d states, %v, want %d, %q", len(list), err, c.before, c.want)
			}
		})
	}
}

// FuzzStates: what is read of a record is what makes such a record.
func FuzzStates(f *testing.F) {
	f.Add(states())
	f.Add(states(wordsOf(wire.State{Site: 1, Ordinal: 2, Words: []uint64{3}})...))
	f.Add(states(wordsOf(wire.State{Whole: true, Registers: make([]uint64, 17), FailedReads: 1,
		Words: []uint64{0}, Left: true, Outcome: 1, Hash: 1 << 31, Flags: 127})...))
	f.Fuzz(func(t *testing.T, record []byte) {
		b, err := wire.ParseBatch(record)
		if err != nil || !b.HasStates() {
			return
		}
		var again []byte
		for s, err := range b.States() {
			if err != nil {
				return
			}
			again = wire.AppendState(again[:0], &s)
			one, err := readStates(states(words(again)...))
			if err != nil || len(one) != 1 {
				t.Fatalf("%d states of one: %v", len(one), err)
			}
			if diff := cmp.Diff(s, one[0]); diff != "" {
				t.Errorf("it is read otherwise (-first +again):\n%s", diff)
			}
		}
	})
}

func wordsOf(s wire.State) []uint64 { return words(wire.AppendState(nil, &s)) }

func ExampleBatch_States() {
	record := states(wordsOf(wire.State{Site: 7, Ordinal: 1, Words: []uint64{0x2a}})...)
	b, err := wire.ParseBatch(record)
	if err != nil {
		fmt.Println(err)
		return
	}
	for s, err := range b.States() {
		fmt.Println(s.Site, s.Ordinal, s.Words, err)
	}
	// Output:
	// 7 1 [42] <nil>
}
