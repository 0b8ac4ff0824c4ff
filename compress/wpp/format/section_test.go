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
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/wpptest"
)

// The sections of a test: numbers that no package has.
const (
	counts    = wpp.SectionKind(1 << 20)
	ofRules   = counts + 1 | wpp.OfRules
	necessary = counts + 2 | wpp.Critical
)

// sectioned is a snapshot with sections of another package.
func sectioned(kinds ...wpp.SectionKind) *wpp.Snapshot {
	s := wpptest.Small()
	for i, kind := range kinds {
		data := bytes.Repeat([]byte{byte(i), 'x'}, 100*i) // the first is empty
		s.Sections = append(s.Sections, wpp.NewSection(kind, data))
	}
	return s
}

// A read section is its kind and its data.
type readSection struct {
	Kind wpp.SectionKind
	Data []byte
}

func sectionsIn(t *testing.T, s *wpp.Snapshot) (list []readSection) {
	t.Helper()
	for _, x := range s.Sections {
		data, err := x.Data()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, readSection{x.Kind(), slices.Clip(data)})
	}
	return list
}

func checkSectionsEqual(t *testing.T, want, got *wpp.Snapshot) {
	t.Helper()
	a, b := sectionsIn(t, want), sectionsIn(t, got)
	if !slices.EqualFunc(a, b, func(a, b readSection) bool {
		return a.Kind == b.Kind && bytes.Equal(a.Data, b.Data)
	}) {
		t.Errorf("sections %s", cmp.Diff(a, b))
	}
}

// readers read a file in the ways that there are: at once, and as a file in which sections stay.
var readers = map[string]func(file []byte) io.Reader{
	"pipe":   func(file []byte) io.Reader { return unseekable{bytes.NewReader(file)} },
	"stream": func(file []byte) io.Reader { return io.MultiReader(bytes.NewReader(file)) },
	"file":   func(file []byte) io.Reader { return bytes.NewReader(file) },
}

// An unseekable file is a pipe.
type unseekable struct{ *bytes.Reader }

func (unseekable) Seek(int64, int) (int64, error) { return 0, syscall.ESPIPE }

func (unseekable) ReadAt([]byte, int64) (int, error) { return 0, syscall.ESPIPE }

// Sections come back as they were, whoever knows them; those that nobody knows are named, and do
// not change what else a snapshot says.
func TestSections(t *testing.T) {
	want := sectioned(counts, ofRules, counts, necessary)
	file := encoded(t, want)
	for name, reader := range readers {
		got, err := Read(reader(file), counts, necessary)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkSectionsEqual(t, want, got)
		if want := []wpp.SectionKind{ofRules}; !slices.Equal(got.Skipped, want) {
			t.Errorf("%s: skipped %v, want %v", name, got.Skipped, want)
		}
		if n := len(slices.Collect(got.SectionsOf(counts))); n != 2 {
			t.Errorf("%s: %d sections of the kind", name, n)
		}
		if again := encoded(t, got); !bytes.Equal(again, file) {
			t.Errorf("%s: what is copied is another file", name)
		}
		got.Sections, got.Skipped = nil, nil
		if d := wpptest.Difference(wpptest.Small(), got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A section that must be known is refused by who does not know it, with the remedy.
func TestCriticalSectionIsRefused(t *testing.T) {
	for name, reader := range readers {
		_, err := Read(reader(encoded(t, sectioned(counts, necessary))), counts)
		const want = "snapshot needs a reader that knows sections of kind 1048578, which this " +
			"wpptrace does not: use a newer wpptrace"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
		var e *Error
		if !errors.As(err, &e) || !e.SaysRemedy() {
			t.Errorf("%s: the remedy is not known to be there", name)
		}
	}
}

// Sections of later versions of the format are skipped, too, wherever they stand; no file of an
// earlier version may have any.
func TestSectionsOfLaterVersions(t *testing.T) {
	good := smallSections()
	later := section{kind: 9, stored: []byte("as it is"), raw: 0}
	for at := 3; at <= len(good); at++ {
		sections := slices.Insert(slices.Clone(good), at, later)
		file := frame(version, append(sections, end)...)
		s, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatalf("at %d: %v", at, err)
		}
		if got := sectionsIn(t, s); len(got) != 1 || got[0].Kind != 9 ||
			string(got[0].Data) != "as it is" {
			t.Errorf("at %d: %v", at, got)
		}
		if _, err := Read(bytes.NewReader(encoded(t, s))); err != nil {
			t.Errorf("at %d: the copy: %v", at, err)
		}
		old := frame(version-1, append(sections, end)...)
		if _, err := Read(bytes.NewReader(old)); err == nil || !strings.HasPrefix(err.Error(),
			"snapshot is damaged: section of kind 9 stands where ") {
			t.Errorf("at %d, in an earlier version: %v", at, err)
		}
	}
	early := slices.Insert(slices.Clone(good), 1, later)
	if _, err := Read(bytes.NewReader(frame(version, append(early, end)...))); err == nil {
		t.Error("a section before the tables is accepted")
	}
}

// A section that is made here has no number of the format's own, and is no larger than may be read.
func TestSectionsThatCannotBeWritten(t *testing.T) {
	for _, kind := range []wpp.SectionKind{0, 4, 15, 9 | wpp.Critical, 15 | wpp.OfRules} {
		if err := Write(io.Discard, sectioned(kind)); err == nil || !strings.HasSuffix(err.Error(),
			"is the file format's own") {
			t.Errorf("kind %x: %v", uint32(kind), err)
		}
	}
}

// Whatever is wrong with a section is found when its data is asked for, or when it is copied: it
// costs nobody anything who does not ask.
func TestDamagedSection(t *testing.T) {
	good := smallSections()
	stored := compressed([]byte("some data"))
	file := func(s section) []byte {
		return frame(version, append(slices.Insert(slices.Clone(good), 3, s), end)...)
	}
	whole := file(section{sectionKind(counts), stored, 9})
	at := bytes.Index(whole, stored)
	flipped := slices.Clone(whole)
	flipped[at+len(stored)-1] ^= 1
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a flipped bit": {flipped, "checksum does not match"},
		"more than declared": {file(section{sectionKind(counts), stored, 8}),
			"decompresses to other than the declared 8 bytes"},
		"less than declared": {file(section{sectionKind(counts), stored, 10}),
			"decompresses to other than the declared 10 bytes"},
		"not compressed": {file(section{sectionKind(counts), []byte("some data"), 9}),
			"decompress: "},
		"a bomb": {file(section{sectionKind(counts), compressed(make([]byte, 1<<20)),
			10}), "decompresses to other than"},
		"nothing, compressed": {file(section{sectionKind(counts), nil, 10}),
			"decompresses to other than"},
	} {
		path := filepath.Join(t.TempDir(), "x.wpp")
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s, err := Read(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = s.Sections[0].Data()
		if err == nil || !strings.HasPrefix(err.Error(),
			"snapshot "+path+" is damaged: section of kind 1048576 at byte ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Write(io.Discard, s); name == "a flipped bit" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: copied: %v", name, err)
		}
	}
	too := frame(version, append(slices.Insert(slices.Clone(good), 3,
		section{sectionKind(counts), nil, maxRaw + 1}), end)...)
	if _, err := Read(bytes.NewReader(too)); err == nil || !strings.Contains(err.Error(),
		"declares 1073741825 bytes, more than 1073741824") {
		t.Errorf("too much declared: %v", err)
	}
}

// What a section declares is not allocated before it is there.
func TestSectionsAllocateWhatIsThere(t *testing.T) {
	h := binary.LittleEndian.AppendUint32(nil, uint32(counts))
	h = binary.LittleEndian.AppendUint32(h, 1<<32-1)
	h = binary.LittleEndian.AppendUint32(h, maxRaw)
	h = append(h, 0, 0, 0, 0)
	file := append(frame(version, smallSections()...),
		binary.LittleEndian.AppendUint32(h, checksum(h))...)
	for name, reader := range readers {
		if n := testing.AllocsPerRun(1, func() {
			if _, err := Read(reader(file)); !errors.Is(err, ErrTruncated) {
				t.Errorf("%s: %v", name, err)
			}
		}); n > 10_000 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// Of a file that is cut off, the sections that are whole are read; where a system that went down
// has left a hole in one, the others are.
func TestSectionsAreSalvaged(t *testing.T) {
	want := sectioned(counts, counts, ofRules)
	file := encoded(t, want)
	var first *wpp.Snapshot
	for n := range file {
		got, err := Read(bytes.NewReader(file[:n]), counts, ofRules)
		if !errors.Is(err, ErrTruncated) && n >= len(magic) {
			t.Fatalf("the first %d of %d bytes: %v", n, len(file), err)
		}
		if got != nil && first == nil {
			first = got // of the first thread, before which the sections stand
		}
		if got != nil {
			checkSectionsEqual(t, want, got)
		}
	}
	data, err := want.Sections[1].Data()
	if err != nil {
		t.Fatal(err)
	}
	raw := encodedSection(t, data)
	at := bytes.Index(file, raw)
	holed := slices.Clone(file[:len(file)-1])
	clear(holed[at : at+len(raw)])
	got, err := Read(bytes.NewReader(holed), counts, ofRules)
	if got == nil || !errors.Is(err, ErrTruncated) || len(got.Sections) != 2 {
		t.Fatalf("with a hole: %v", err)
	}
	want.Sections = slices.Delete(want.Sections, 1, 2)
	checkSectionsEqual(t, want, got)
}

// encodedSection is what is stored of a section's data.
func encodedSection(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := newFrameWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return w.zstd.EncodeAll(data, nil)
}

// A writer that writes tables again and again writes a section once, as soon as it is there.
func TestSectionsAreWrittenOnce(t *testing.T) {
	want := wpptest.Repetitive()
	want.Sections = sectioned(counts, counts, counts).Sections
	file := drafted(t, want)
	got, err := Read(bytes.NewReader(file), counts)
	if err != nil {
		t.Fatal(err)
	}
	wpptest.SameStreams(t, want, got)
	checkSectionsEqual(t, want, got)
	s, err := Read(bytes.NewReader(file[:len(file)-400]), counts)
	if !errors.Is(err, ErrTruncated) || s == nil {
		t.Fatal(err)
	}
	checkSectionsEqual(t, want, s)
}

const sectionsFile = "testdata/version6-sections.wpp"

// Files with sections of other packages stay readable for ever, as those without.
func TestReadsSections(t *testing.T) {
	want := sectioned(counts, ofRules, counts)
	if *update {
		if err := os.WriteFile(sectionsFile, encoded(t, want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := readFile(t, sectionsFile)
	if want := []wpp.SectionKind{counts, ofRules}; !slices.Equal(got.Skipped, want) {
		t.Errorf("skipped %v, want %v", got.Skipped, want)
	}
}

// A package above may keep what it likes in a snapshot: here, how often each routine was called.
func ExampleRead_sections() {
	const calls = wpp.SectionKind(1<<20 + 7)
	s := wpptest.Small()
	s.Sections = append(s.Sections, wpp.NewSection(calls, []byte{12, 0}))
	var file bytes.Buffer
	if err := Write(&file, s); err != nil {
		fmt.Println(err)
		return
	}
	whole := file.Bytes()

	read, err := Read(bytes.NewReader(whole), calls)
	if err != nil {
		fmt.Println(err)
		return
	}
	for x := range read.SectionsOf(calls) {
		data, err := x.Data()
		fmt.Println(data, err)
	}

	other, err := Read(bytes.NewReader(whole)) // by who does not know the kind
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, kind := range other.Skipped {
		fmt.Println("skipped: kind", kind.Number())
	}
	// Output:
	// [12 0] <nil>
	// skipped: kind 1048583
}

// However a section's header and bytes are, reading ends with data or an error, and what can be
// read is copied as it is.
func FuzzSection(f *testing.F) {
	f.Add(uint32(counts), []byte("as it is"), uint32(0))
	f.Add(uint32(counts), compressed([]byte("some data")), uint32(9))
	f.Add(uint32(ofRules), compressed([]byte("some data")), uint32(1<<31))
	f.Add(uint32(necessary), []byte(nil), uint32(5))
	f.Add(uint32(7), []byte{1}, uint32(1))
	f.Fuzz(func(t *testing.T, kind uint32, stored []byte, raw uint32) {
		if sectionKind(kind).isOwn() || raw > fuzzMaxRaw && raw < maxRaw {
			return
		}
		sections := append(smallSections(), section{sectionKind(kind), stored, int(raw)}, end)
		file := frame(version, sections...)
		for _, reader := range readers {
			s, err := Read(reader(file))
			if err != nil {
				continue
			}
			data, dataErr := s.Sections[0].Data()
			again, err := Read(bytes.NewReader(encoded(t, s)))
			if err != nil {
				t.Fatalf("the copy: %v", err)
			}
			other, err := again.Sections[0].Data()
			if (err == nil) != (dataErr == nil) || !bytes.Equal(data, other) {
				t.Fatalf("%v, %v; the copy %v, %v", data, dataErr, other, err)
			}
		}
	})
}
