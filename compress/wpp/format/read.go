package format

import (
	"errors"
	"fmt"
	"io"

	"wpptrace/compress/wpp"
)

// Read reads a snapshot. It trusts nothing that it reads: a file that is truncated, damaged or made
// to harm gives an error of one line that names the section, and costs memory and time in
// proportion to what it decompresses to, at most 1 GiB of sections and of grammars, at 16 bytes a
// symbol. Large segments stay where they are until they are needed, if r is a file: see
// wpp.Grammar.
//
// Of a file that is cut off, or whose end was never written, it returns, with an error that is
// ErrTruncated, a snapshot of the threads and segments that are whole, if there are any.
//
// known are the kinds of sections of other packages that the caller knows. Other ones are in
// Snapshot.Skipped, and a file that has a critical one is refused.
func Read(r io.Reader, known ...wpp.SectionKind) (*wpp.Snapshot, error) {
	return fail(read(r, maxRaw, known...))
}

// ReadParts is Read for who needs few parts of a file: segments stay where they are until they are
// needed, however small they are.
func ReadParts(r io.Reader, known ...wpp.SectionKind) (*wpp.Snapshot, error) {
	return fail(readFrom(r, maxRaw, 0, known))
}

func fail(s *wpp.Snapshot, err error) (*wpp.Snapshot, error) {
	if err != nil {
		return s, &Error{err}
	}
	return s, nil
}

// An Error is one of reading a file. Its text is "snapshot", then that of Err.
type Error struct{ Err error }

func (e *Error) Error() string { return "snapshot " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// SaysRemedy reports whether the text of the error says what to do.
func (e *Error) SaysRemedy() bool {
	return errors.As(e.Err, new(versionError)) || errors.As(e.Err, new(*salvageError)) ||
		errors.As(e.Err, new(unknownError))
}

// read's errors complete the sentence that begins with "snapshot" and its name.
func read(r io.Reader, maxRaw int, known ...wpp.SectionKind) (*wpp.Snapshot, error) {
	return readFrom(r, maxRaw, atOnce, known)
}

func readFrom(r io.Reader, maxRaw int, atOnce uint64,
	known []wpp.SectionKind) (*wpp.Snapshot, error) {
	frame, err := newFrameReader(r, maxRaw)
	if err != nil {
		return nil, err
	}
	f := &fileReader{frame: frame, s: &wpp.Snapshot{}, atOnce: atOnce, known: known}
	return f.readAll()
}

// A fileReader reads the sections of a snapshot.
type fileReader struct {
	frame    *frameReader
	s        *wpp.Snapshot
	has      [threadSection]bool // by kind: figures, program, symbols
	all      []*storedSegment
	segments []*storedSegment // nil where it is a thread's
	atOnce   uint64           // see atOnce
	known    []wpp.SectionKind
}

func (f *fileReader) readAll() (*wpp.Snapshot, error) {
	err := f.sections()
	if errors.As(err, new(garbledError)) && !f.frame.isFinished() {
		err = fmt.Errorf("%w, and %w", ErrTruncated, err)
	}
	if errors.Is(err, ErrTruncated) {
		return f.salvaged(err)
	}
	if err != nil {
		return nil, err
	}
	return f.snapshot()
}

func (f *fileReader) sections() error {
	for {
		name := f.expected()
		h, err := f.frame.next(name)
		switch {
		case err != nil:
			return err
		case f.isOther(h.kind):
			if err := f.other(h); err != nil {
				return err
			}
			continue
		case !f.fits(h.kind):
			return damaged("section %v stands where %s should", h.kind, name)
		case h.kind == endSection:
			return f.frame.end(h)
		case h.kind != threadSection:
			name = h.kind.String()
		}
		if err := f.read(h, name); err != nil {
			return err
		}
	}
}

// expected names the section that comes next, if it is not one of those that may be left out.
func (f *fileReader) expected() string {
	for kind := figuresSection; kind < threadSection; kind++ {
		if !f.has[kind] {
			return kind.String()
		}
	}
	return fmt.Sprintf("thread %d", len(f.s.Threads))
}

// isOther reports whether a section is of another package, or of a later version, and stands where
// such may.
func (f *fileReader) isOther(kind sectionKind) bool {
	return !kind.isOwn() && f.frame.version >= withOthers && f.has[symbolSection]
}

func (f *fileReader) fits(kind sectionKind) bool {
	if expected := f.expected(); !f.has[symbolSection] {
		return kind.String() == expected
	}
	switch kind {
	case figuresSection, programSection, symbolSection, segmentSection:
		return f.frame.version >= withSegments && len(f.s.Threads) == 0
	}
	return kind == threadSection || kind == endSection
}

// read reads the section behind a header.
func (f *fileReader) read(h sectionHeader, name string) error {
	switch h.kind {
	case figuresSection:
		var m FiguresSection
		if err := f.frame.message(h, name, &m); err != nil {
			return err
		}
		f.s.Figures = decodeFigures(&m)
	case programSection:
		var m ProgramSection
		if err := f.frame.message(h, name, &m); err != nil {
			return err
		}
		if err := f.frame.rows.program(&m); err != nil {
			return damaged("section program: %w", err)
		}
		if err := decodeProgram(f.s, &m); err != nil {
			return damaged("section program: %w", err)
		}
	case symbolSection:
		var m SymbolSection
		if err := f.frame.message(h, name, &m); err != nil {
			return err
		}
		if err := f.frame.rows.symbols(len(m.Kind)); err != nil {
			return damaged("section symbols: %w", err)
		}
		symbols, err := decodeSymbols(&m)
		if err != nil {
			return damaged("section symbols: %w", err)
		}
		f.s.Symbols = append(f.s.Symbols, symbols...)
	case segmentSection:
		segment, err := f.frame.segment(h, fmt.Sprintf("segment %d", len(f.all)))
		if err != nil {
			return err
		}
		f.all, f.segments = append(f.all, segment), append(f.segments, segment)
		return nil
	case threadSection:
		var m ThreadSection
		if err := f.frame.message(h, name, &m); err != nil {
			return err
		}
		t, err := f.thread(&m)
		if err != nil {
			return damaged("section %s: %w", name, err)
		}
		f.s.Threads = append(f.s.Threads, t)
		return nil
	}
	f.has[h.kind] = true
	return nil
}

// atOnce is how many symbols the grammars of segments may have, all together, to be read at once;
// else they stay in the file until they are needed.
const atOnce = 1 << 22

// snapshot returns what has been read.
func (f *fileReader) snapshot() (*wpp.Snapshot, error) {
	symbols := uint64(0)
	for _, x := range f.all {
		x.terminals = len(f.s.Symbols)
		symbols += x.about.Symbols
	}
	if err := f.s.Check(); err != nil {
		return nil, damaged("%w", err)
	}
	for i := range f.s.Threads {
		t := &f.s.Threads[i]
		if t.Grammar.NumSegments() == 0 || symbols > f.atOnce {
			continue
		}
		joined, err := t.Grammar.InMemory()
		var load *wpp.LoadError
		if errors.As(err, &load) {
			return nil, load.Err
		}
		if err != nil {
			return nil, damaged("%w", err)
		}
		t.Grammar = joined
	}
	return f.s, nil
}
