package wpp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// inSegments returns a snapshot whose threads' streams are those of another's, cut by a rule into
// segments in memory.
func inSegments(s *Snapshot, cut func(length int) []int) *Snapshot {
	c := *s
	c.Threads = slices.Clone(s.Threads)
	for i := range c.Threads {
		stream := slices.Collect(s.Threads[i].Grammar.Expand(0))
		var list []*Segment
		at := 0
		for _, end := range append(cut(len(stream)), len(stream)) {
			list = append(list, NewSegment(grammarOf(stream[at:end]...)))
			at = end
		}
		c.Threads[i].Grammar = Join(list)
	}
	return &c
}

func cuts(t *rapid.T) func(length int) []int {
	return func(length int) []int {
		ends := rapid.SliceOfN(rapid.IntRange(0, length), 0, 4).Draw(t, "cuts")
		slices.Sort(ends)
		return ends
	}
}

func checkStreams(t interface {
	Fatalf(format string, args ...any)
}, want, got *Snapshot) {
	if len(want.Threads) != len(got.Threads) {
		t.Fatalf("%d threads, want %d", len(got.Threads), len(want.Threads))
	}
	for i := range want.Threads {
		a, b := &want.Threads[i], &got.Threads[i]
		if !slices.Equal(slices.Collect(a.Grammar.Expand(0)), slices.Collect(b.Grammar.Expand(0))) || a.TID != b.TID || a.Name != b.Name || a.Lost != b.Lost || a.Ended != b.Ended {
			t.Fatalf("thread %d is another", i)
		}
		if a.Grammar.Length(0) != b.Grammar.Length(0) {
			t.Fatalf("thread %d has %d symbols, want %d", i, b.Grammar.Length(0), a.Grammar.Length(0))
		}
	}
}

// readLazily reads a snapshot whose segments stay in the file.
func readLazily(file []byte) (*Snapshot, error) {
	frame, err := newFrameReader(bytes.NewReader(file), maxRaw)
	if err != nil {
		return nil, err
	}
	f := &fileReader{frameReader: frame, s: &Snapshot{}}
	return f.readAll()
}

func TestSegmentsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anySnapshot(t)
		cut := inSegments(want, cuts(t))
		checkStreams(t, want, cut)
		file := encoded(t, cut)
		lazy, err := readLazily(file)
		if err != nil {
			t.Fatal(err)
		}
		checkStreams(t, want, lazy)
		again := encoded(t, lazy) // segments are copied
		if !bytes.Equal(file, again) {
			t.Fatal("the copy of a file in segments is another")
		}
		whole, err := Read(iotest.HalfReader(bytes.NewReader(file)))
		if err != nil {
			t.Fatal(err)
		}
		checkStreams(t, want, whole)
		for i := range whole.Threads {
			checkSameGrammar(t, lazy.Threads[i].Grammar, whole.Threads[i].Grammar)
		}
	})
}

// checkSameGrammar compares what the methods of two grammars say.
func checkSameGrammar(t *rapid.T, a, b *Grammar) {
	if b.NumSegments() > 0 {
		t.Fatal("a small snapshot was not read at once")
	}
	if a.Rules() != b.Rules() || a.BodySymbols() != b.BodySymbols() || len(a.Order()) != len(b.Order()) {
		t.Fatalf("%d rules of %d symbols, and %d of %d", a.Rules(), a.BodySymbols(), b.Rules(), b.BodySymbols())
	}
	for r := range b.Rules() {
		if !slices.Equal(a.Body(r), b.Body(r)) || a.Length(r) != b.Length(r) || a.Uses(r) != b.Uses(r) {
			t.Fatalf("rule %d: %v and %v", r, a.Body(r), b.Body(r))
		}
	}
	for i := range a.NumSegments() {
		segment, first := a.Segment(i)
		if segment.Length(0) != a.Length(first) || segment.Rules() > 1 && len(segment.Body(1)) != len(a.Body(first+1)) {
			t.Fatalf("segment %d is another on its own", i)
		}
	}
	place := make([]int, a.Rules())
	for i, r := range a.Order() {
		place[r] = i
	}
	for r := range a.Rules() {
		for _, v := range a.Body(r) {
			if IsRule(v) && place[RuleOf(v)] <= place[r] {
				t.Fatalf("rule %d stands before rule %d, which uses it", RuleOf(v), r)
			}
		}
	}
}

// drafted spills the threads of a snapshot in halves, in turns, with the symbols and routines that
// they need, and returns the file.
func drafted(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.wpp")
	d := NewDraft(path)
	final := *s
	final.Threads = slices.Clone(s.Threads)
	lists := make([][]*Segment, len(s.Threads))
	told := 0
	for half := range 3 {
		for i, th := range s.Threads {
			stream := slices.Collect(th.Grammar.Expand(0))
			middle := len(stream) / 2
			part := stream[:middle]
			if half > 0 {
				part = stream[middle:]
			}
			th.Grammar = grammarOf(part...)
			if half == 1 {
				lists[i] = append(lists[i], NewSegment(th.Grammar))
			}
			if half > 0 {
				continue
			}
			tables := *s
			tables.Threads = nil
			known := told
			for _, sym := range part {
				known = max(known, int(sym)+1)
			}
			tables.Symbols = s.Symbols[told:known]
			told = known
			x, err := d.Spill(&tables, i, th)
			if err != nil {
				t.Fatal(err)
			}
			lists[i] = append(lists[i], x)
		}
	}
	for i := range lists {
		final.Threads[i].Grammar = Join(lists[i])
	}
	if err := d.Finish(t.Context(), &final); err != nil {
		t.Fatal(err)
	}
	checkStreams(t, s, &final)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if names := namesIn(t, filepath.Dir(path)); !slices.Equal(names, []string{"x.wpp"}) {
		t.Errorf("left in the directory: %v", names)
	}
	return b
}

// repetitive is a snapshot one of whose threads repeats itself, so that both ways of coding
// segments are met.
func repetitive() *Snapshot {
	s := smallSnapshot()
	s.Threads[0].Grammar = grammarOf(slices.Repeat([]uint32{0, 1}, 100)...)
	return s
}

const draftFile = "testdata/version3-segments.wpp"

func TestDraft(t *testing.T) {
	want := repetitive()
	old, err := os.ReadFile(draftFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"of today": drafted(t, want), draftFile: old} {
		got, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkStreams(t, want, got)
		if d := difference(&Snapshot{Images: want.Images, Routines: want.Routines, Files: want.Files, Symbols: want.Symbols, Figures: want.Figures},
			&Snapshot{Images: got.Images, Routines: got.Routines, Files: got.Files, Symbols: got.Symbols, Figures: got.Figures}); d != "" {
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
		about, coded := encodeSegment(NewSegment(grammarOf(0, 1, 0, 1)).about, grammarOf(0, 1, 0, 1))
		about.Tid, about.Rules, about.Symbols, about.Length = 4711, mostSegment, mostSegment, mostSegment
		message, err := proto.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		stored := binary.AppendUvarint(nil, uint64(len(message)))
		sections = append(sections, section{segmentSection, slices.Concat(stored, message, coded), 0})
		numbers = append(numbers, i)
	}
	file := frame(withSegments, append(sections, packed(threadSection, &ThreadSection{Tid: 4711, Segment: numbers}), end)...)
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
			defer Recover(&err)
			s.Threads[0].Grammar.Order()
			return nil
		}
		if err := order(); err == nil || !strings.Contains(err.Error(), "it is not as large as it says") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// However a draft is cut off, what is read of it are beginnings of the threads, and no less than
// the whole segments.
func TestSalvage(t *testing.T) {
	want := repetitive()
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
		symbols := beginnings(t, fmt.Sprintf("the first %d of %d bytes", n, len(file)), want, got)
		if symbols < most {
			t.Fatalf("the first %d of %d bytes: %d symbols, fewer bytes gave %d", n, len(file), symbols, most)
		}
		most = symbols
	}
	if all := want.Threads[0].Grammar.Length(0) + want.Threads[1].Grammar.Length(0); most != all {
		t.Errorf("all but the end section gives %d symbols of %d", most, all)
	}
}

// beginnings fails the test unless the threads of one snapshot are beginnings of another's, and
// counts their symbols.
func beginnings(t *testing.T, name string, want, got *Snapshot) (symbols uint64) {
	t.Helper()
	for i := range got.Threads {
		stream := slices.Collect(got.Threads[i].Grammar.Expand(0))
		j := slices.IndexFunc(want.Threads, func(t Thread) bool { return t.TID == got.Threads[i].TID })
		all := slices.Collect(want.Threads[j].Grammar.Expand(0))
		if len(stream) > len(all) || !slices.Equal(stream, all[:len(stream)]) {
			t.Fatalf("%s: thread %d is %v", name, i, stream)
		}
		symbols += uint64(len(stream))
	}
	return symbols
}

// A bit that flips in a segment of nothing, which nobody reads, goes unnoticed.
func TestEveryBitFlipInSegments(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, and runs no goroutines")
	}
	want := repetitive()
	whole := drafted(t, want)
	for bit := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		got, err := Read(bytes.NewReader(b))
		if err == nil {
			checkStreams(t, want, got)
		} else {
			checkOneLine(t, err)
		}
		if lazy, err := readLazily(b); err == nil && readThrough(lazy) == nil {
			checkStreams(t, want, lazy)
		}
	}
}

// TestDamagedSegmentNamesItsFile: what was found only when a segment was needed said neither which
// file it is in nor what to do.
func TestDamagedSegmentNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wpp")
	b := drafted(t, repetitive())
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
		lazy, err := (&fileReader{frameReader: frame, s: &Snapshot{}}).readAll()
		if err != nil {
			continue // it is found at once
		}
		if err = readThrough(lazy); err == nil {
			continue // it is in what nobody reads
		}
		found++
		if !strings.HasPrefix(err.Error(), "snapshot "+path+" is damaged: segment at byte ") || !strings.HasSuffix(err.Error(), "copy it again from where it was recorded, or record anew") {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	if found == 0 {
		t.Error("no damage is found when a segment is needed")
	}
}

// readThrough reads all of a snapshot.
func readThrough(s *Snapshot) (err error) {
	defer Recover(&err)
	for i := range s.Threads {
		for range s.Threads[i].Grammar.Expand(0) {
		}
	}
	return nil
}

// A draft that cannot be written any more leaves what was recorded before, and tells where.
func TestDraftOnAFullDisk(t *testing.T) {
	want := repetitive()
	for fail := 1; ; fail++ {
		path := filepath.Join(t.TempDir(), "x.wpp")
		f := &failingFiles{fail: fail}
		d := newDraft(f, path)
		spilled := 0
		var err error
		for i := 0; i < 2 && err == nil; i++ {
			tables := *want
			if i > 0 {
				tables.Symbols = nil
			}
			if _, err = d.Spill(&tables, 0, want.Threads[0]); err == nil {
				spilled++
			}
		}
		if f.failed == "" && d.Discard() == nil {
			if names := namesIn(t, filepath.Dir(path)); len(names) > 0 {
				t.Errorf("left after Discard: %v", names)
			}
			return
		}
		if err == nil { // it was discarding that failed
			continue
		}
		if !errors.Is(err, errStep) {
			t.Errorf("step %d, %s: %v", fail, f.failed, err)
		}
		names := namesIn(t, filepath.Dir(path))
		if spilled == 0 {
			continue
		}
		if len(names) != 1 || !strings.Contains(err.Error(), names[0]) {
			t.Fatalf("step %d, %s: left %v, error %v", fail, f.failed, names, err)
		}
		got, err := ReadFile(filepath.Join(filepath.Dir(path), names[0]))
		if !errors.Is(err, ErrTruncated) || got == nil || got.Threads[0].Grammar.Length(0) < want.Threads[0].Grammar.Length(0) {
			t.Errorf("step %d, %s: read %v", fail, f.failed, err)
		}
	}
}

func ExampleDraft() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s := smallSnapshot()
	path := filepath.Join(dir, "x.wpp")
	d := NewDraft(path)
	tables := *s // as far as they are known
	tables.Threads = nil
	first, err := d.Spill(&tables, 0, Thread{TID: 4711, Grammar: grammarOf(0, 1, 0, 1)})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := NewSegment(grammarOf(1, 0))
	s.Threads = []Thread{{TID: 4711, Grammar: Join([]*Segment{first, last})}}
	if err := d.Finish(context.Background(), s); err != nil {
		fmt.Println(err)
		return
	}
	read, err := ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.InSegments(), slices.Collect(read.Threads[0].Grammar.Expand(0)))
	// Output: false [0 1 0 1 1 0]
}

// Whatever fails when a recording that has spilled is finished, what it spilled can be read: at its
// place, or where the error says. If it is given up, nothing is left.
func TestFinishOnAFullDisk(t *testing.T) {
	want := repetitive()
	for fail := 1; ; fail++ {
		path := filepath.Join(t.TempDir(), "x.wpp")
		f := &failingFiles{}
		d := newDraft(f, path)
		segment, err := d.Spill(want, 0, want.Threads[0])
		if err != nil {
			t.Fatal(err)
		}
		final := *want
		final.Threads = slices.Clone(want.Threads)
		final.Threads[0].Grammar = Join([]*Segment{segment})
		f.fail = f.step + fail
		err = d.Finish(t.Context(), &final)
		if f.failed == "" {
			if err != nil || fail < 6 {
				t.Fatalf("after %d steps: %v", fail, err)
			}
			break
		}
		left := path
		if names := namesIn(t, filepath.Dir(path)); len(names) == 1 && err != nil {
			left = filepath.Join(filepath.Dir(path), names[0])
		} else if err != nil {
			t.Fatalf("step %d, %s: left %v, error %v", fail, f.failed, names, err)
		}
		if left != path && !strings.Contains(err.Error(), left) {
			t.Errorf("step %d, %s: %s is left, error %v", fail, f.failed, left, err)
		}
		got, readErr := ReadFile(left)
		if readErr != nil && !errors.Is(readErr, ErrTruncated) || got == nil || got.Threads[0].Grammar.Length(0) != want.Threads[0].Grammar.Length(0) {
			t.Errorf("step %d, %s: %v; read %v", fail, f.failed, err, readErr)
		}
	}
	dir := t.TempDir()
	d := NewDraft(filepath.Join(dir, "x.wpp"))
	if _, err := d.Spill(want, 0, want.Threads[0]); err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Finish(done, want); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if names := namesIn(t, dir); len(names) > 0 {
		t.Errorf("left after it was given up: %v", names)
	}
}
