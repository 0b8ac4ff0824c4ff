package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// A memoryFile is a file in memory.
type memoryFile struct{ bytes.Buffer }

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.Bytes()).ReadAt(p, at)
}

// drafted is the file of a snapshot whose threads are written in halves, the first of each as a
// segment before all is known.
func drafted(t *testing.T, s *wpp.Snapshot) []byte {
	t.Helper()
	var file memoryFile
	w, err := NewWriter(&file)
	if err != nil {
		t.Fatal(err)
	}
	final, err := wpptest.InHalves(s,
		func(tables *wpp.Snapshot, thread int, th wpp.Thread) (*wpp.Segment, error) {
			if err := w.Tables(tables); err != nil {
				return nil, err
			}
			return w.Segment(thread, th, &file)
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(final); err != nil {
		t.Fatal(err)
	}
	wpptest.SameStreams(t, s, final)
	return file.Bytes()
}

// readLazily reads a snapshot whose segments stay in the file.
func readLazily(file []byte) (*wpp.Snapshot, error) {
	frame, err := newFrameReader(bytes.NewReader(file), maxRaw)
	if err != nil {
		return nil, err
	}
	f := &fileReader{frame: frame, s: &wpp.Snapshot{}}
	return f.readAll()
}

func TestSegmentsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := wpptest.Any(t)
		cut := wpptest.InSegments(want, wpptest.Cuts(t))
		wpptest.SameStreams(t, want, cut)
		file := encoded(t, cut)
		lazy, err := readLazily(file)
		if err != nil {
			t.Fatal(err)
		}
		wpptest.SameStreams(t, want, lazy)
		again := encoded(t, lazy) // segments are copied
		if !bytes.Equal(file, again) {
			t.Fatal("the copy of a file in segments is another")
		}
		whole, err := Read(iotest.HalfReader(bytes.NewReader(file)))
		if err != nil {
			t.Fatal(err)
		}
		wpptest.SameStreams(t, want, whole)
		for i := range whole.Threads {
			checkSameGrammar(t, lazy.Threads[i].Grammar, whole.Threads[i].Grammar)
		}
	})
}

// The first symbols of a thread in segments are those of the whole thread.
func TestFirstOfSegments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := wpptest.Any(t)
		lazy, err := readLazily(encoded(t, wpptest.InSegments(want, wpptest.Cuts(t))))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Threads {
			all := slices.Collect(want.Threads[i].Grammar.Expand(0))
			n := rapid.IntRange(0, len(all)+1).Draw(t, "symbols")
			got := slices.Collect(lazy.Threads[i].Grammar.First(uint64(n)).Expand(0))
			if n = min(n, len(all)); len(got) < n || !slices.Equal(got, all[:len(got)]) {
				t.Fatalf("%v are the first %d of %v", got, n, all)
			}
		}
	})
}

// checkSameGrammar compares what the methods of two grammars say.
func checkSameGrammar(t *rapid.T, a, b *wpp.Grammar) {
	if b.NumSegments() > 0 {
		t.Fatal("a small snapshot was not read at once")
	}
	if a.Rules() != b.Rules() || a.BodySymbols() != b.BodySymbols() ||
		len(a.Order()) != len(b.Order()) {
		t.Fatalf("%d rules of %d symbols, and %d of %d", a.Rules(), a.BodySymbols(), b.Rules(),
			b.BodySymbols())
	}
	for r := range b.Rules() {
		if !slices.Equal(a.Body(r), b.Body(r)) || a.Length(r) != b.Length(r) ||
			a.Uses(r) != b.Uses(r) {
			t.Fatalf("rule %d: %v and %v", r, a.Body(r), b.Body(r))
		}
	}
	for i := range a.NumSegments() {
		segment, first := a.Segment(i)
		if segment.Length(0) != a.Length(first) ||
			segment.Rules() > 1 && len(segment.Body(1)) != len(a.Body(first+1)) {
			t.Fatalf("segment %d is another on its own", i)
		}
	}
	place := make([]int, a.Rules())
	for i, r := range a.Order() {
		place[r] = i
	}
	for r := range a.Rules() {
		for _, v := range a.Body(r) {
			if wpp.IsRule(v) && place[wpp.RuleOf(v)] <= place[r] {
				t.Fatalf("rule %d stands before rule %d, which uses it", wpp.RuleOf(v), r)
			}
		}
	}
}

const draftFile = "testdata/version3-segments.wpp"

func TestDraft(t *testing.T) {
	want := wpptest.Repetitive()
	old, err := os.ReadFile(draftFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"of today": drafted(t, want), draftFile: old} {
		got, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wpptest.SameStreams(t, want, got)
		if d := wpptest.Difference(&wpp.Snapshot{Images: want.Images, Routines: want.Routines,
			Files: want.Files, Symbols: want.Symbols, Figures: want.Figures},
			&wpp.Snapshot{Images: got.Images, Routines: got.Routines, Files: got.Files,
				Symbols: got.Symbols, Figures: got.Figures}); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// liesFile is a snapshot with segments that have fewer rules than they declare: query's tests ask
// it questions.
const liesFile = "testdata/version3-lies.wpp"

func TestLyingSegments(t *testing.T) {
	sections := smallSections()[:3]
	var numbers []uint32
	for i := range uint32(15) {
		about, coded := encodeSegment(wpptest.GrammarOf(0, 1, 0, 1))
		about.Tid, about.Rules, about.Symbols, about.Length = 4711, mostSegment, mostSegment,
			mostSegment
		message, err := proto.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		stored := binary.AppendUvarint(nil, uint64(len(message)))
		sections = append(sections,
			section{segmentSection, slices.Concat(stored, message, coded), 0})
		numbers = append(numbers, i)
	}
	file := frame(withSegments,
		append(sections, packed(threadSection, &ThreadSection{Tid: 4711, Segment: numbers}),
			end)...)
	old, err := os.ReadFile(liesFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"of today": file, liesFile: old} {
		s, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		order := func() (err error) {
			defer wpp.Recover(&err)
			s.Threads[0].Grammar.Order()
			return nil
		}
		if err := order(); err == nil || !strings.Contains(err.Error(),
			"it is not as large as it says") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// However a draft is cut off, what is read of it are beginnings of the threads, and no less than
// the whole segments.
func TestSalvage(t *testing.T) {
	want := wpptest.Repetitive()
	file := drafted(t, want)
	most := uint64(0)
	for n := range file {
		got, err := Read(bytes.NewReader(file[:n]))
		if n > 0 && !errors.Is(err, ErrTruncated) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(file), err)
		}
		if got == nil {
			if most > 0 {
				t.Fatalf("the first %d of %d bytes give nothing, fewer do: %v", n, len(file), err)
			}
			continue
		}
		if !strings.Contains(err.Error(), "read was what is whole") {
			t.Errorf("%v", err)
		}
		symbols := wpptest.Beginnings(t, fmt.Sprintf("the first %d of %d bytes", n, len(file)),
			want, got)
		if symbols < most {
			t.Fatalf("the first %d of %d bytes: %d symbols, fewer bytes gave %d", n, len(file),
				symbols, most)
		}
		most = symbols
	}
	if all := want.Threads[0].Grammar.Length(0) + want.Threads[1].Grammar.Length(0); most != all {
		t.Errorf("all but the end section gives %d symbols of %d", most, all)
	}
}

// A bit that flips in a segment of nothing, which nobody reads, goes unnoticed.
func TestEveryBitFlipInSegments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, and runs no goroutines")
	}
	want := wpptest.Repetitive()
	whole := drafted(t, want)
	for bit := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		got, err := Read(bytes.NewReader(b))
		if err == nil {
			wpptest.SameStreams(t, want, got)
		} else {
			checkOneLine(t, err)
		}
		if lazy, err := readLazily(b); err == nil && readThrough(lazy) == nil {
			wpptest.SameStreams(t, want, lazy)
		}
	}
}

// TestDamagedSegmentNamesItsFile: what was found only when a segment was needed said neither which
// file it is in nor what to do.
func TestDamagedSegmentNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wpp")
	b := drafted(t, wpptest.Repetitive())
	found := 0
	for at := 0; at < len(b) && found < 10; at++ {
		damaged := slices.Clone(b)
		damaged[at] ^= 1
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		frame, err := newFrameReader(file, maxRaw)
		if err != nil {
			continue
		}
		lazy, err := (&fileReader{frame: frame, s: &wpp.Snapshot{}}).readAll()
		if err != nil {
			continue // it is found at once
		}
		if err = readThrough(lazy); err == nil {
			continue // it is in what nobody reads
		}
		found++
		if !strings.HasPrefix(err.Error(), "snapshot "+path+" is damaged: segment at byte ") ||
			!strings.HasSuffix(err.Error(), "copy it again from where it was recorded, or record "+
				"anew") {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	if found == 0 {
		t.Error("no damage is found when a segment is needed")
	}
}

// readThrough reads all of a snapshot.
func readThrough(s *wpp.Snapshot) (err error) {
	defer wpp.Recover(&err)
	for i := range s.Threads {
		for range s.Threads[i].Grammar.Expand(0) {
		}
	}
	return nil
}

// A part of a file that is zero, wherever it begins and ends, as a system that went down leaves it:
// what is read was recorded, or there is an error.
func TestHoles(t *testing.T) {
	want := wpptest.Repetitive()
	whole := drafted(t, want)
	for _, size := range []int{1, 64, 512, len(whole)} {
		for at := range whole {
			b := slices.Clone(whole)
			clear(b[at:min(at+size, len(b))])
			if bytes.Equal(b, whole) {
				continue
			}
			name := fmt.Sprintf("%d zero bytes at %d of %d", size, at, len(whole))
			got, err := Read(io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b))))
			switch {
			case err != nil:
				checkOneLine(t, err)
				if got != nil {
					wpptest.Beginnings(t, name, want, got)
				}
			default: // it is in what nobody reads
				wpptest.SameStreams(t, want, got)
			}
		}
	}
}
