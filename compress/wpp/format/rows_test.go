package format

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// A program that is written anew with each segment counts once against the limit of a file.
func TestTablesThatAreReplacedCountOnce(t *testing.T) {
	var out bytes.Buffer
	f, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	f.frame.left = 1 << 20
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "x"}},
		Routines: []wpp.Routine{{Name: strings.Repeat("f", 300_000), Paths: 1}}}
	for n := range uint64(10) {
		s.Routines[0].Entry = n // so that it differs from the one before
		if err := f.Tables(s); err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
	}
	if err := f.Finish(s); err != nil {
		t.Fatal(err)
	}
	if got, err := read(&out, 1<<20); err != nil || got.Routines[0].Entry != 9 {
		t.Errorf("%v", err)
	}
}

// Rows count as what they are in memory, where a few bytes of a file make many.
func TestRowsAreCharged(t *testing.T) {
	const n = maxRows/symbolRow + 1
	zeros := make([]uint32, n)
	for name, m := range map[string]*ProgramSection{
		"blocks":   {BlockAddr: make([]int64, maxRows/blockRow+1)},
		"routines": {RoutineName: zeros[:maxRows/routineRow+1]},
		"calls":    {CallName: make([]uint32, maxRows/callRow+1)},
		"spans":    {SpanInstructions: make([]uint32, maxRows/spanRow+1)},
	} {
		var r rows
		if err := r.program(m); err == nil ||
			err.Error() != "tables take 2048 MiB of memory, more than 2048" {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.program(&ProgramSection{}); err != nil {
			t.Errorf("%s, replaced by none: %v", name, err)
		}
	}
	var r rows
	if err := errors.Join(r.symbols(n/2), r.symbols(n/2-1)); err != nil {
		t.Error(err)
	}
	if err := r.symbols(n / 2); err == nil {
		t.Error("more symbols than there may be are taken")
	}
}

// A section of tables that is larger than any may be is refused before it is read.
func TestLargeTablesAreRefused(t *testing.T) {
	var out bytes.Buffer
	w, err := newFrameWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.section(figuresSection, &FiguresSection{}),
		w.write(sectionHeader{kind: programSection, raw: maxTable + 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := read(&out, maxRaw); err == nil || !strings.Contains(err.Error(),
		"section program declares 268435457 bytes, more than 268435456") {
		t.Error(err)
	}
}

// What a segment declares is believed when it has been read: a rule takes memory in whoever asks.
func TestSegmentsThatDeclareTooManyRules(t *testing.T) {
	g := wpptest.GrammarOf(slices.Repeat([]uint32{0, 1, 0, 0, 1, 1, 0}, 50)...)
	about := &SegmentSection{Rules: 1 << 25, Symbols: 1 << 25, Length: 1 << 40}
	s := &storedSegment{about: about, file: bytes.NewReader(nil)}
	joined := wpp.Join([]*wpp.Segment{wpp.NewSegment(g), s.segment()})
	defer func() {
		var load *wpp.LoadError
		if err, _ := recover().(error); !errors.As(err, &load) {
			t.Error(err)
		}
	}()
	joined.Order()
}
