package wpp

import (
	"fmt"
	"iter"
	"sync"
)

// A Section is a part of a snapshot that belongs to a package above this one, which alone knows
// what its data means: a profile, the values of a thread. That package makes one with NewSection,
// adds it to Snapshot.Sections, and finds it again with SectionsOf in a snapshot that was read. Its
// data never changes. Any number of goroutines may use it.
type Section struct {
	kind SectionKind

	where  sync.Mutex
	data   []byte
	source SectionSource // nil: it is in memory

	mutex   sync.Mutex
	decoded any // by Decoded; nil: not yet
}

// Decoded returns what decode has made of the section: it is called until it does not fail once.
// Any number of goroutines may ask, and wait for each other.
func (s *Section) Decoded(decode func() (any, error)) (any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.decoded == nil {
		made, err := decode()
		if err != nil {
			return nil, err
		}
		s.decoded = made
	}
	return s.decoded, nil
}

// A SectionSource has a section's data, for example in a file. Any number of goroutines may use it.
type SectionSource interface {
	// Data returns the data, read and checked for the caller alone.
	Data() ([]byte, error)
}

// A SectionKind says what a section is: a number, and what a reader does that does not know that
// number. The table of numbers stands in docs/snapshot.md.
type SectionKind uint32

const (
	// Critical marks a kind without which the rest of a snapshot is misunderstood: who does not
	// know it refuses the file. Sections of other kinds are skipped.
	Critical SectionKind = 1 << 31
	// OfRules marks a kind whose data refers to the rules of grammars, not to what these derive:
	// who does not know it and makes other grammars leaves it out.
	OfRules SectionKind = 1 << 30

	// FirstSection is the lowest number that is not the file format's own.
	FirstSection SectionKind = 16
)

// Number returns the kind without its marks.
func (k SectionKind) Number() uint32 { return uint32(k &^ (Critical | OfRules)) }

// IsCritical reports whether the kind is marked Critical.
func (k SectionKind) IsCritical() bool { return k&Critical != 0 }

// IsOfRules reports whether the kind is marked OfRules.
func (k SectionKind) IsOfRules() bool { return k&OfRules != 0 }

// NewSection returns a section of data that must not change any more.
func NewSection(kind SectionKind, data []byte) *Section {
	return &Section{kind: kind, data: data}
}

// StoredSection returns a section whose data a source has.
func StoredSection(kind SectionKind, source SectionSource) *Section {
	return &Section{kind: kind, source: source}
}

// Kind returns what the section is.
func (s *Section) Kind() SectionKind { return s.kind }

// Data returns the section's data, which must not be changed. A section of a file is read from
// there by each call, and may turn out to be damaged.
func (s *Section) Data() ([]byte, error) {
	data, source := s.held()
	if source == nil {
		return data, nil
	}
	return source.Data()
}

// Source returns where the data is, or nil for a section in memory.
func (s *Section) Source() SectionSource {
	_, source := s.held()
	return source
}

func (s *Section) held() ([]byte, SectionSource) {
	s.where.Lock()
	defer s.where.Unlock()
	return s.data, s.source
}

// Store has a source have the data from now on, in place of memory: it has the same.
func (s *Section) Store(source SectionSource) {
	s.where.Lock()
	defer s.where.Unlock()
	s.data, s.source = nil, source
}

// SectionsOf iterates over the sections of a kind, in the order of the file.
func (s *Snapshot) SectionsOf(kind SectionKind) iter.Seq[*Section] {
	return func(yield func(*Section) bool) {
		for _, x := range s.Sections {
			if x.kind == kind && !yield(x) {
				return
			}
		}
	}
}

// checkSections makes sure that no section that was made here is one of the file format's own, as
// one of a later version may be that was read.
func (s *Snapshot) checkSections() error {
	for i, x := range s.Sections {
		if n := x.kind.Number(); x.Source() == nil && n < uint32(FirstSection) {
			return fmt.Errorf("section %d: kind %d is the file format's own", i, n)
		}
	}
	return nil
}
