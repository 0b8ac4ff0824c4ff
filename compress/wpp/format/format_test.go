package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"wpptrace/compress/coding"
	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

var update = flag.Bool("update", false, "write testdata anew")

func encoded(t interface{ Fatal(...any) }, s *wpp.Snapshot) []byte {
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := wpptest.Any(t)
		got, err := Read(bytes.NewReader(encoded(t, want)))
		if err != nil {
			t.Fatal(err)
		}
		if d := wpptest.Difference(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestRoundTripOfNothing(t *testing.T) {
	want := &wpp.Snapshot{}
	got, err := Read(bytes.NewReader(encoded(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if d := wpptest.Difference(want, got); d != "" {
		t.Fatal(d)
	}
}

// A grammar whose rules are not numbered in the order of their first use comes back with such
// numbers.
func TestRoundTripRenumbersRules(t *testing.T) {
	s := wpptest.Small()
	s.Threads[0].Grammar = grammarOfBodies(t,
		[][]uint32{{0, wpp.RuleSymbol(2), wpp.RuleSymbol(2)}, {1, 2},
			{wpp.RuleSymbol(1), 3, wpp.RuleSymbol(1)}})
	got, err := Read(bytes.NewReader(encoded(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	s.Threads[0].Grammar = grammarOfBodies(t,
		[][]uint32{{0, wpp.RuleSymbol(1), wpp.RuleSymbol(1)},
			{wpp.RuleSymbol(2), 3, wpp.RuleSymbol(2)}, {1, 2}})
	if d := wpptest.Difference(s, got); d != "" {
		t.Fatal(d)
	}
}

func grammarOfBodies(t *testing.T, bodies [][]uint32) *wpp.Grammar {
	t.Helper()
	g, err := wpp.NewGrammar(bodies)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Files of each version must stay readable for ever: a change of the format adds one. -update
// writes the newest only.
func TestReadsAllVersions(t *testing.T) {
	if *update {
		if err := os.WriteFile(versionFile(version), encoded(t, wpptest.Small()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	for v := 1; v <= version; v++ {
		got := readFile(t, versionFile(v))
		if d := wpptest.Difference(wpptest.Small(), got); d != "" {
			t.Errorf("version %d: %s", v, d)
		}
	}
}

// readFile reads a snapshot from a file.
func readFile(t *testing.T, path string) *wpp.Snapshot {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

func versionFile(v int) string { return filepath.Join("testdata", fmt.Sprintf("version%d.wpp", v)) }

// The symbols of coded grammars count in the limit of a file, since few bytes may hold many.
func TestReadBoundsSymbols(t *testing.T) {
	const n = 10_000
	repeated := slices.Repeat([]uint32{0}, n)
	s := &wpp.Snapshot{Symbols: wpptest.Small().Symbols[1:2],
		Threads: []wpp.Thread{{Grammar: grammarOfBodies(t, [][]uint32{repeated})},
			{Grammar: wpptest.GrammarOf()}}}
	file := encoded(t, s)
	for _, c := range []struct {
		limit int
		want  string
	}{
		{(n + 100) * symbolBytes, ""},
		{n * symbolBytes, "is damaged: section thread 0: coded grammar declares 10000 symbols, " +
			"more than the "},
	} {
		_, err := read(bytes.NewReader(file), c.limit)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("limit %d: %v, want %q", c.limit, err, c.want)
		}
	}
}

func checkOneLine(t *testing.T, err error) {
	t.Helper()
	if message := err.Error(); strings.ContainsAny(message, "\n\r") || !strings.HasPrefix(message,
		"snapshot ") {
		t.Errorf("not one clear line: %q", message)
	}
}

func TestEveryTruncation(t *testing.T) {
	whole := encoded(t, wpptest.Small())
	for n := range whole {
		_, err := Read(bytes.NewReader(whole[:n]))
		if err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(whole))
		}
		checkOneLine(t, err)
		if n > 0 && !strings.HasPrefix(err.Error(), "snapshot is truncated ") {
			t.Errorf("the first %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestEveryBitFlip(t *testing.T) {
	whole := encoded(t, wpptest.Small())
	for bit := range 8 * len(whole) {
		b := slices.Clone(whole)
		b[bit/8] ^= 1 << (bit % 8)
		_, err := Read(bytes.NewReader(b))
		if err == nil {
			t.Fatalf("bit %d of byte %d may flip", bit%8, bit/8)
		}
		checkOneLine(t, err)
	}
}

func TestSmallReads(t *testing.T) {
	got, err := Read(iotest.OneByteReader(bytes.NewReader(encoded(t, wpptest.Small()))))
	if err != nil {
		t.Fatal(err)
	}
	if d := wpptest.Difference(wpptest.Small(), got); d != "" {
		t.Fatal(d)
	}
}

func TestReadFails(t *testing.T) {
	broken := errors.New("input/output error")
	whole := encoded(t, wpptest.Small())
	for n := range whole {
		r := io.MultiReader(bytes.NewReader(whole[:n]), iotest.ErrReader(broken))
		if _, err := Read(r); !errors.Is(err, broken) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
}

func TestWriteFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, and runs no goroutines")
	}
	whole := encoded(t, wpptest.Small())
	for n := range whole {
		if err := Write(&fullDisk{left: n}, wpptest.Small()); !errors.Is(err, errFullDisk) {
			t.Fatalf("after %d bytes: %v", n, err)
		}
	}
	if err := Write(&fullDisk{left: len(whole)}, wpptest.Small()); err != nil {
		t.Fatal(err)
	}
}

func TestWriteRefuses(t *testing.T) {
	s := wpptest.Small()
	s.Threads[0].Grammar = nil
	var b bytes.Buffer
	if err := Write(&b, s); err == nil || b.Len() > 0 {
		t.Fatalf("wrote %d bytes of a snapshot that cannot be read: %v", b.Len(), err)
	}
}

var errFullDisk = errors.New("no space left on device")

// A fullDisk takes some bytes and no more.
type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.left)
	d.left -= n
	if n < len(b) {
		return n, errFullDisk
	}
	return n, nil
}

// A section is a part of a hand-made file.
type section struct {
	kind   sectionKind
	stored []byte
	raw    int
}

func packed(kind sectionKind, m proto.Message) section {
	raw, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return section{kind, compressed(raw), len(raw)}
}

func compressed(raw []byte) []byte {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	return encoder.EncodeAll(raw, nil)
}

// frame makes a file with valid checksums of any sections.
func frame(version uint32, sections ...section) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(magic), version)
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	for _, s := range sections {
		var h []byte
		for _, v := range []uint32{uint32(s.kind), uint32(len(s.stored)), uint32(s.raw),
			checksum(s.stored)} {
			h = binary.LittleEndian.AppendUint32(h, v)
		}
		b = append(b, binary.LittleEndian.AppendUint32(h, checksum(h))...)
		b = append(b, s.stored...)
	}
	return b
}

// smallSections are the messages of smallSnapshot, in the order of the file, without the end.
func smallSections() []section {
	s := wpptest.Small()
	return []section{
		packed(figuresSection, encodeFigures(&s.Figures)),
		packed(programSection, encodeProgram(s)),
		packed(symbolSection, encodeSymbols(s.Symbols)),
		packed(threadSection, encodeThread(&s.Threads[0], nil)),
		packed(threadSection, encodeThread(&s.Threads[1], nil)),
	}
}

var end = section{kind: endSection}

// All checksums are right in these files; what they say is not.
func TestReadRefuses(t *testing.T) {
	good := smallSections()
	with := func(i int, s section) []byte {
		sections := slices.Clone(good)
		sections[i] = s
		return frame(1, append(sections, end)...)
	}
	bomb := compressed(make([]byte, 1<<20))
	unknown := uint64(1) << 40
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"nothing": {nil, "is no wpptrace snapshot"},
		"text": {[]byte("#!/bin/sh\necho hello, world\n"),
			"is no wpptrace snapshot"},
		"a newer version": {frame(9, end), "has version 9; this wpptrace reads versions 1 to " +
			"6: use a newer wpptrace"},
		"sections missing": {frame(1, end), "is damaged: section end stands where figures " +
			"should"},
		"sections twice": {frame(1, good[0], good[0]),
			"is damaged: section figures stands where program should"},
		"figures as a thread": {frame(1, append(slices.Clone(good), good[0])...),
			"is damaged: section figures stands where thread 2 should"},
		"unknown section": {with(4, section{kind: 77}),
			"is damaged: section of kind 77 stands where thread 1 should"},
		"end not empty": {frame(1,
			append(slices.Clone(good), section{endSection, bomb, 1 << 20})...),
			"is damaged: section end is not empty"},
		"more behind the end": {append(frame(1, append(slices.Clone(good), end)...), 0),
			"is damaged: something follows section end"},
		"more than declared": {with(3, section{threadSection, bomb, 1<<20 - 1}),
			"is damaged: section thread 0: decompresses to other than the declared 1048575 bytes"},
		"less than declared": {with(3, section{threadSection, bomb, 1<<20 + 1}),
			"is damaged: section thread 0: decompresses to other than the declared 1048577 bytes"},
		"too much declared": {with(3, section{threadSection, bomb, maxRaw}),
			"is damaged: section thread 0 declares 1073741824 bytes, more than the "},
		"not compressed": {with(3, section{threadSection, []byte("hello"), 5}),
			"is damaged: section thread 0: decompress: "},
		"no message": {with(3, section{threadSection, compressed([]byte{0xff}), 1}),
			"is damaged: section thread 0: proto:"},
		"no start rule": {with(3, tree()), "is damaged: section thread 0: bodies of rules " +
			"disagree with their lengths"},
		"body too short": {with(3, tree(2, 0)),
			"is damaged: section thread 0: bodies of rules disagree with their lengths"},
		"body too long": {with(3, tree(0, 0)),
			"is damaged: section thread 0: bodies of rules disagree with their lengths"},
		"body without length": {with(3, tree(1, 1)),
			"is damaged: section thread 0: bodies of rules disagree with their lengths"},
		"huge body": {with(3, tree(1<<32-1, 0)),
			"is damaged: section thread 0: bodies of rules disagree with their lengths"},
		"bodies too long": {with(3, tree(2, 1, 3, 0, 0)),
			"is damaged: section thread 0: bodies of rules disagree with their lengths"},
		"rule out of range": {with(3, tree(1, 7)),
			"is damaged: section thread 0: refers back by 3 rules of 1"},
		"the start rule": {with(3, tree(1, 3)),
			"is damaged: section thread 0: refers back by 1 rules of 1"},
		"cyclic rules": {with(3, tree(1, 1, 1, 3)),
			"is damaged: section thread 0: 1 of 2 rules are unused or derive themselves"},
		"empty rule": {with(3, tree(1, 1, 0)),
			"is damaged: section thread 0: rule 1 of 2 is empty"},
		"coded too short": {with(3, coded([]byte{3, 1, 0})),
			"is damaged: section thread 0: coded grammar ends too early"},
		"coded too large": {with(3, coded(binary.AppendUvarint([]byte{3}, maxRaw))),
			"is damaged: section thread 0: coded grammar declares 1073741824 symbols, more than " +
				"the "},
		"coded terminal": {with(3, coded(coding.Encode([][]uint32{{5}}))),
			"is damaged: thread 0: rule 0: symbol 5 of 5"},
		"unknown terminal": {with(3, tree(1, 10)),
			"is damaged: thread 0: rule 0: symbol 5 of 5"},
		"unknown mark": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Kind[0] = 6 }))),
			"is damaged: symbol 0: unknown mark(5)"},
		"mark above a byte": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Kind[0] = 257 }))),
			"is damaged: section symbols: symbol 0: unknown mark 256"},
		"start above a byte": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Start[0] = 256 }))),
			"is damaged: section symbols: symbol 0: path from unknown start 256 to end 0"},
		"routine above int32": {with(2,
			packed(symbolSection,
				oneSymbol(func(m *SymbolSection) { m.Routine[0] = int64(unknown) }))),
			"is damaged: symbol 0: routine "},
		"symbol rows": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Cut = nil }))),
			"is damaged: section symbols: columns disagree"},
		"blocks missing": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Blocks[0] = 1 }))),
			"is damaged: section symbols: columns disagree"},
		"blocks left": {with(2,
			packed(symbolSection, oneSymbol(func(m *SymbolSection) { m.Block = []int64{0} }))),
			"is damaged: section symbols: columns disagree"},
		"text missing": {with(1, packed(programSection, &ProgramSection{File: []uint32{0}})),
			"is damaged: section program: file 0: text 0 of 0"},
		"text too long": {with(1,
			packed(programSection, &ProgramSection{TextLength: []uint32{1}})),
			"is damaged: section program: columns disagree"},
		"image rows": {with(1,
			packed(programSection, &ProgramSection{ImageName: []uint32{0}})),
			"is damaged: section program: columns disagree"},
		"ranges left": {with(1,
			packed(programSection, &ProgramSection{RangeLo: []int64{0}, RangeSize: []uint64{1}})),
			"is damaged: section program: columns disagree"},
		"ranges missing": {with(1,
			packed(programSection,
				oneRoutine(func(m *ProgramSection) { m.RoutineRanges[0] = 1 << 31 }))),
			"is damaged: section program: routine 0: columns disagree"},
		"blocks of a routine": {with(1,
			packed(programSection,
				oneRoutine(func(m *ProgramSection) { m.RoutineBlocks[0] = 1 << 31 }))),
			"is damaged: section program: routine 0: columns disagree"},
		"name of a routine": {with(1,
			packed(programSection, oneRoutine(func(m *ProgramSection) { m.RoutineName[0] = 1 }))),
			"is damaged: section program: routine 0: text 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file))
			if err == nil {
				t.Fatal("accepted")
			}
			checkOneLine(t, err)
			if !strings.HasPrefix(err.Error(), "snapshot "+c.want) {
				t.Errorf("%v, want snapshot %s", err, c.want)
			}
		})
	}
}

func coded(coded []byte) section { return packed(threadSection, &ThreadSection{Grammar: coded}) }

func tree(tree ...uint32) section { return packed(threadSection, &ThreadSection{Tree: tree}) }

func oneSymbol(change func(*SymbolSection)) *SymbolSection {
	m := encodeSymbols([]wpp.Symbol{{}})
	change(m)
	return m
}

func oneRoutine(change func(*ProgramSection)) *ProgramSection {
	m := encodeProgram(&wpp.Snapshot{Routines: []wpp.Routine{{}}})
	change(m)
	return m
}

// A file may declare lengths, but memory is spent on bytes that are there: neither a stored nor a
// raw length is allocated from.
func TestReadAllocatesWhatIsThere(t *testing.T) {
	for name, file := range map[string][]byte{
		"stored": frame(1, section{figuresSection, nil, 0})[:headerSize],
		"raw":    frame(1, section{figuresSection, compressed(nil), maxRaw}),
	} {
		if name == "stored" {
			h := binary.LittleEndian.AppendUint32(nil, uint32(figuresSection))
			h = binary.LittleEndian.AppendUint32(h, 1<<32-1)
			h = append(h, make([]byte, 8)...)
			file = append(file, binary.LittleEndian.AppendUint32(h, checksum(h))...)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(file))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}

func ExampleRead() {
	var file bytes.Buffer
	if err := Write(&file, wpptest.Small()); err != nil {
		fmt.Println(err)
		return
	}
	s, err := Read(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range s.Threads {
		fmt.Println(t.TID, t.Grammar.Length(0), "paths and marks")
	}
	_, err = Read(strings.NewReader("nothing of the kind"))
	fmt.Println(err)
	// Output:
	// 4711 11 paths and marks
	// 4712 0 paths and marks
	// snapshot is no wpptrace snapshot
}

// fuzzMaxRaw keeps decompression bombs small, so that the fuzzer does not spend its time on them.
const fuzzMaxRaw = 1 << 20

func FuzzRead(f *testing.F) {
	f.Add([]byte(nil), false)
	f.Add(encoded(f, wpptest.Small()), false)
	f.Add(encoded(f, wpptest.Inlined()), false)
	f.Add(frame(9, end), false)
	for _, s := range append(smallSections(), tree(3, 1, 2, 0, 2, 3, 4),
		packed(programSection, encodeProgram(wpptest.Inlined()))) {
		raw, err := decompress(s.stored, uint32(s.raw))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{byte(s.kind)}, raw...), true)
	}
	for _, g := range []*wpp.Grammar{wpptest.GrammarOf(1, 2, 1, 2),
		wpptest.GrammarOf(slices.Repeat([]uint32{0, 1}, 100)...)} {
		about, coded, err := codedSegment(wpp.NewSegment(g))
		if err != nil {
			f.Fatal(err)
		}
		message, err := proto.Marshal(about)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(slices.Concat([]byte{byte(segmentSection), byte(len(message))}, message, coded), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, message bool) {
		file := b
		if message {
			// b is a section's message, behind its kind: checksums and compression do not shield
			// the decoder from it
			file = fuzzFrame(b)
		}
		s, err := read(bytes.NewReader(file), fuzzMaxRaw)
		if err != nil {
			return
		}
		again, err := Read(bytes.NewReader(encoded(t, s)))
		if err != nil {
			t.Fatalf("what was read cannot be written and read: %v", err)
		}
		// whose rules may have any numbers
		inSegment := message && len(b) > 0 && b[0] == byte(segmentSection)
		if d := wpptest.Difference(s, again); d != "" && !inSegment {
			t.Fatal(d)
		}
		for sym := range s.Symbols {
			s.SymbolCost(uint32(sym))
			for range s.Locations(uint32(sym)) {
			}
			for piece := range s.Pieces(uint32(sym)) {
				for span := range piece.Spans() {
					for range s.Stack(span.Call) {
					}
				}
			}
		}
	})
}

func fuzzFrame(b []byte) []byte {
	sections := smallSections()
	if len(b) > 0 {
		if i := int(b[0]) - 1; i >= 0 && i < 4 {
			sections[i] = section{sectionKind(b[0]), compressed(b[1:]), len(b) - 1}
		}
		if sectionKind(b[0]) == segmentSection {
			return frame(withSegments, sections[0], sections[1], sections[2],
				section{segmentSection, b[1:], 0}, packed(threadSection,
					&ThreadSection{Segment: []uint32{0}}), end)
		}
	}
	return frame(1, append(sections, end)...)
}

func BenchmarkReadSmall(b *testing.B) {
	file := encoded(b, wpptest.Small())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(file)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteSmall(b *testing.B) {
	s := wpptest.Small()
	b.ReportAllocs()
	for b.Loop() {
		if err := Write(io.Discard, s); err != nil {
			b.Fatal(err)
		}
	}
}
