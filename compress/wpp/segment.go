package wpp

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"wpptrace/compress/coding"
)

// A Segment is a part of the stream of a thread, as a grammar of its own: in memory, or in a file,
// from which it is read when it is needed.
type Segment struct {
	about   *SegmentSection // its thread means something only in a file
	grammar *Grammar        // nil: it is in the file

	file      io.ReaderAt
	at        int64 // of what is stored
	stored    uint32
	checked   uint32 // checksum
	terminals int    // of the alphabet
}

// NewSegment returns a segment that is in memory, which must not be one of segments itself.
func NewSegment(g *Grammar) *Segment {
	about := &SegmentSection{Rules: uint64(g.Rules()), Symbols: uint64(g.BodySymbols()), Length: g.Length(0)}
	return &Segment{about: about, grammar: g}
}

// Length returns how many symbols the segment derives.
func (s *Segment) Length() uint64 { return s.about.Length }

// mostSegment bounds the symbols of a segment, as maxRaw bounds those of a file's other grammars.
const mostSegment = maxRaw / symbolBytes

// repeats reports whether a grammar is so much smaller than what it derives that coding it well is
// worth the time.
func repeats(g *Grammar) bool { return uint64(g.BodySymbols()) <= g.Length(0)/4 }

// encodeSegment codes the grammar of a segment that is in memory: fast where it would gain little.
func encodeSegment(about *SegmentSection, g *Grammar) (*SegmentSection, []byte) {
	about = proto.CloneOf(about)
	if !repeats(g) {
		about.Coding = SegmentSection_PLAIN
		return about, coding.EncodePlain(g.bodies)
	}
	about.Coding = SegmentSection_MIXED
	return about, coding.Encode(g.bodies)
}

// newFileSegment is the segment of a section, whose stored bytes are at a place of a file and begin
// with these.
func newFileSegment(file io.ReaderAt, at int64, h sectionHeader, begin []byte) (*Segment, error) {
	s := &Segment{about: &SegmentSection{}, file: file, at: at, stored: h.stored, checked: h.storedChecked}
	message, _, err := cutMessage(begin)
	if err != nil {
		return nil, err
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(message, s.about); err != nil {
		return nil, err
	}
	if s.about.Symbols > mostSegment || s.about.Rules == 0 || s.about.Rules > s.about.Symbols+1 || (s.about.Length == 0) != (s.about.Symbols == 0) {
		return nil, fmt.Errorf("declares %d rules of %d symbols that derive %d", s.about.Rules, s.about.Symbols, s.about.Length)
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
func (s *Segment) coded() (*SegmentSection, []byte, error) {
	if s.grammar != nil {
		about, coded := encodeSegment(s.about, s.grammar)
		return about, coded, nil
	}
	stored := make([]byte, s.stored)
	if _, err := s.file.ReadAt(stored, s.at); err != nil {
		return nil, nil, fmt.Errorf("cannot be read: segment at byte %d: %w", s.at, err)
	}
	if checksum(stored) != s.checked {
		return nil, nil, damaged("segment at byte %d: checksum does not match", s.at)
	}
	_, coded, err := cutMessage(stored)
	if err != nil {
		return nil, nil, damaged("segment at byte %d: %w", s.at, err)
	}
	return s.about, coded, nil
}

// load returns the segment's grammar, checked.
func (s *Segment) load() (*Grammar, error) {
	if s.grammar != nil {
		return s.grammar, nil
	}
	about, coded, err := s.coded()
	if err != nil {
		return nil, err
	}
	decode := map[SegmentSection_Coding]func([]byte, uint64, uint64) ([][]uint32, error){
		SegmentSection_EARLY: coding.DecodeEarly, SegmentSection_PLAIN: coding.DecodePlain, SegmentSection_MIXED: coding.Decode,
	}[about.Coding]
	if decode == nil {
		return nil, damaged("segment at byte %d: unknown coding %d", s.at, about.Coding)
	}
	bodies, err := decode(coded, about.Symbols, about.Rules)
	if err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	g, err := NewGrammar(bodies)
	if err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	if uint64(g.Rules()) != about.Rules || uint64(g.BodySymbols()) != about.Symbols || g.Length(0) != about.Length {
		return nil, damaged("segment at byte %d: it is not as large as it says", s.at)
	}
	if err := checkTerminals(bodies, s.terminals); err != nil {
		return nil, damaged("segment at byte %d: %w", s.at, err)
	}
	return g, nil
}

func checkTerminals(bodies [][]uint32, terminals int) error {
	for r, body := range bodies {
		for _, v := range body {
			if !IsRule(v) && int64(v) >= int64(terminals) {
				return fmt.Errorf("rule %d: symbol %d of %d", r, v, terminals)
			}
		}
	}
	return nil
}

// emptyGrammar derives nothing. Threads that did nothing share it.
var emptyGrammar = &Grammar{bodies: [][]uint32{nil}, order: []int{0}, lengths: []uint64{0}, uses: []uint64{1}}

// Join returns the grammar of segments that follow one another: its start rule's symbols are their
// start rules. Segments that are in a file stay there, but for some that were needed last.
func Join(list []*Segment) *Grammar {
	list = slices.DeleteFunc(slices.Clone(list), func(s *Segment) bool { return s.about.Length == 0 }) // only a start rule may be empty
	if len(list) == 0 {
		return emptyGrammar
	}
	if len(list) == 1 && list[0].grammar != nil {
		return list[0].grammar
	}
	j := &segments{list: list}
	next := 1
	for _, s := range list {
		j.first = append(j.first, next)
		j.start = append(j.start, RuleSymbol(next))
		j.length = addSaturating(j.length, s.about.Length)
		next += int(s.about.Rules)
	}
	j.first = append(j.first, next)
	return &Grammar{segments: j}
}

// checkJoin makes sure that segments can be joined: the numbers of rules are limited.
func checkJoin(list []*Segment) error {
	rules, symbols := uint64(1), uint64(len(list))
	for _, s := range list {
		rules, symbols = rules+s.about.Rules, symbols+s.about.Symbols
	}
	if rules > math.MaxInt32 || symbols > 1<<40 {
		return fmt.Errorf("segments of %d rules", rules)
	}
	return nil
}

// together returns a grammar in memory that equals that of segments.
func (g *Grammar) together() (joined *Grammar, err error) {
	defer Recover(&err)
	bodies := make([][]uint32, g.Rules())
	for r := range bodies {
		bodies[r] = g.Body(r)
	}
	return NewGrammar(bodies)
}
