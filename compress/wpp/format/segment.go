package format

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/coding"
	"wpptrace/compress/wpp"
)

// A storedSegment is what is stored of a segment, of which the file is read when it is needed.
type storedSegment struct {
	about     *SegmentSection
	file      io.ReaderAt
	at        int64 // of what is stored
	stored    uint32
	checked   uint32 // checksum
	terminals int    // of the alphabet
}

// mostSegment bounds the symbols of a segment, as maxRaw bounds those of a file's other grammars.
const mostSegment = maxRaw / symbolBytes

// segment returns what is stored as a segment of a snapshot.
func (s *storedSegment) segment() *wpp.Segment {
	size := wpp.Size{Rules: s.about.Rules, Symbols: s.about.Symbols, Length: s.about.Length}
	return wpp.StoredSegment(size, s)
}

// Name is the path of the file, as far as it is known.
func (s *storedSegment) Name() string { return nameOf(s.file) }

func nameOf(file io.ReaderAt) string {
	if f, ok := file.(interface{ Name() string }); ok {
		return f.Name()
	}
	return ""
}

// repeats reports whether a grammar is so much smaller than what it derives that coding it well is
// worth the time.
func repeats(g *wpp.Grammar) bool { return uint64(g.BodySymbols()) <= g.Length(0)/4 }

// encodeSegment codes a grammar: fast where it would gain little.
func encodeSegment(g *wpp.Grammar) (*SegmentSection, []byte) {
	about := &SegmentSection{
		Rules: uint64(g.Rules()), Symbols: uint64(g.BodySymbols()), Length: g.Length(0),
	}
	if !repeats(g) {
		about.Coding = SegmentSection_PLAIN
		return about, coding.EncodePlain(g.Bodies())
	}
	about.Coding = SegmentSection_MIXED
	return about, coding.EncodeQuick(g.Bodies())
}

// codedSegment returns the message of a segment and its coded grammar, which it copies as it is
// where it is stored already.
func codedSegment(s *wpp.Segment) (*SegmentSection, []byte, error) {
	if stored, ok := s.Source().(*storedSegment); ok {
		coded, err := stored.coded()
		return proto.CloneOf(stored.about), coded, err
	}
	g, err := s.Load()
	if err != nil {
		return nil, nil, err
	}
	about, coded := encodeSegment(g)
	return about, coded, nil
}

// newStoredSegment is the segment of a section, whose stored bytes are at a place of a file and
// begin with these.
func newStoredSegment(file io.ReaderAt, at int64, h sectionHeader,
	begin []byte) (*storedSegment, error) {
	s := &storedSegment{about: &SegmentSection{}, file: file, at: at, stored: h.stored,
		checked: h.storedChecked}
	message, _, err := cutMessage(begin)
	if err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(message,
		s.about); err != nil {
		return nil, err
	}
	if s.about.Symbols > mostSegment || s.about.Rules == 0 || s.about.Rules > s.about.Symbols+1 ||
		(s.about.Length == 0) != (s.about.Symbols == 0) {
		return nil, fmt.Errorf("declares %d rules of %d symbols that derive %d", s.about.Rules,
			s.about.Symbols, s.about.Length)
	}
	return s, nil
}

// mostAbout bounds the message of a segment.
const mostAbout = 1 << 12

// cutMessage parts what is stored of a segment, or the beginning of it, into the message and what
// is behind.
func cutMessage(stored []byte) (message, rest []byte, err error) {
	n, k := binary.Uvarint(stored)
	if k <= 0 || n > mostAbout || n > uint64(len(stored)-k) {
		return nil, nil, fmt.Errorf("its message does not fit")
	}
	return stored[k:][:n], stored[uint64(k)+n:], nil
}

// coded returns the segment's coded grammar.
func (s *storedSegment) coded() ([]byte, error) {
	stored := make([]byte, s.stored)
	if _, err := s.file.ReadAt(stored, s.at); err != nil {
		return nil, fmt.Errorf("cannot be read: segment at byte %d: %w", s.at, err)
	}
	if checksum(stored) != s.checked {
		return nil, damaged("segment at byte %d: checksum does not match", s.at)
	}
	_, coded, err := cutMessage(stored)
	if err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	return coded, nil
}

// Load returns the segment's grammar, or what derives its first symbols, checked: see wpp.Source.
func (s *storedSegment) Load(first uint64) (*wpp.Grammar, error) {
	coded, err := s.coded()
	if err != nil {
		return nil, err
	}
	about := s.about
	decode := map[SegmentSection_Coding]func([]byte, uint64, uint64) ([][]uint32, error){
		SegmentSection_EARLY: coding.DecodeEarly, SegmentSection_PLAIN: coding.DecodePlain,
		SegmentSection_MIXED: func(coded []byte, symbols, rules uint64) ([][]uint32, error) {
			return coding.DecodeFirst(coded, symbols, rules, first)
		},
	}[about.Coding]
	if decode == nil {
		return nil, damaged("segment at byte %d: unknown coding %d", s.at, about.Coding)
	}
	bodies, err := decode(coded, about.Symbols, about.Rules)
	if err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	g, err := wpp.NewGrammar(bodies)
	if err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	isFirst := first < about.Length && g.Length(0) >= first && g.Length(0) <= about.Length
	if !isFirst && (uint64(g.Rules()) != about.Rules || uint64(g.BodySymbols()) != about.Symbols ||
		g.Length(0) != about.Length) {
		return nil, damaged("segment at byte %d: it is not as large as it says", s.at)
	}
	if err := g.CheckTerminals(s.terminals); err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	return g, nil
}
