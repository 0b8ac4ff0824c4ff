package top

import (
	"bytes"
	"encoding/gob"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/query/querytest"
)

// What the viewer gets is what was packed, of however many threads, and the same stays with the
// recording.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := querytest.DrawSnapshot(t)
		want := querytest.Streams(s)
		p, err := pack(s)
		if err != nil {
			t.Fatal(err)
		}
		var pipe bytes.Buffer
		if err := gob.NewEncoder(&pipe).Encode(&update{Snapshot: p}); err != nil {
			t.Fatal(err)
		}
		var u update
		if err := gob.NewDecoder(&pipe).Decode(&u); err != nil {
			t.Fatal(err)
		}
		got, err := u.Snapshot.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*wpp.Snapshot{s, got} {
			if !slices.EqualFunc(querytest.Streams(s), want, slices.Equal) {
				t.Fatalf("%v, want %v", querytest.Streams(s), want)
			}
		}
	})
}

// A snapshot that is too large is not sent.
func TestTooLarge(t *testing.T) {
	s := querytest.Letters("ab")
	g, err := wpp.NewGrammar([][]uint32{make([]uint32, mostPacked/4+1)})
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = g
	if _, err := pack(s); !errors.Is(err, errTooLarge) {
		t.Errorf("%v", err)
	}
}
