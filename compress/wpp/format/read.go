package wpp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// Read reads a snapshot. It trusts nothing that it reads: a file that is truncated, damaged or made
// to harm gives an error of one line that names the section, and costs memory and time in
// proportion to what it decompresses to, at most 1 GiB of sections and of grammars, at 16 bytes a
// symbol. Large segments stay where they are until they are needed: see Grammar.
//
// Of a file that is cut off, or whose end was never written, it returns, with an error that is
// ErrTruncated, a snapshot of the threads and segments that are whole, if there are any.
func Read(r io.Reader) (*Snapshot, error) {
	s, err := read(r, maxRaw)
	if err != nil {
		return s, fmt.Errorf("snapshot %w", err)
	}
	return s, nil
}

// ReadFile reads a snapshot from a file, as Read does; its errors name the file and say what to do.
// The file stays open as long as segments of it may be needed.
func ReadFile(path string) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	s, err := read(f, maxRaw)
	if s == nil || !s.InSegments() {
		f.Close()
	}
	if err != nil {
		return s, fileError(path, err)
	}
	return s, nil
}

// InSegments reports whether the grammar of a thread is in segments, as that of a large snapshot is:
// they are read from the file when they are asked for.
func (s *Snapshot) InSegments() bool {
	return slices.ContainsFunc(s.Threads, func(t Thread) bool { return t.Grammar.segments != nil })
}

func fileError(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read snapshot: %w: only its owner may read it: use sudo, or give it away with chown", err)
	case errors.As(err, new(*fs.PathError)):
		return fmt.Errorf("read snapshot: %w: name a file that wpptrace has recorded", err)
	case errors.Is(err, errNoSnapshot):
		return fmt.Errorf("snapshot %s %w: name a file that wpptrace has recorded", path, err)
	case errors.As(err, new(versionError)):
		return fmt.Errorf("snapshot %s %w", path, err)
	case errors.As(err, new(*salvageError)):
		return fmt.Errorf("snapshot %s %w", path, err)
	}
	return fmt.Errorf("snapshot %s %w: copy it again from where it was recorded, or record anew", path, err)
}

// read's errors complete the sentence that begins with "snapshot" and its name.
func read(r io.Reader, maxRaw int) (*Snapshot, error) {
	frame, err := newFrameReader(r, maxRaw)
	if err != nil {
		return nil, err
	}
	f := &fileReader{frameReader: frame, s: &Snapshot{}, atOnce: atOnce}
	return f.readAll()
}

// A fileReader reads the sections of a snapshot.
type fileReader struct {
	*frameReader
	s        *Snapshot
	has      [threadSection]bool // by kind: figures, program, symbols
	all      []*Segment
	segments []*Segment // nil where it is a thread's
	atOnce   uint64     // see atOnce
}

func (f *fileReader) readAll() (*Snapshot, error) {
	err := f.sections()
	if errors.As(err, new(garbledError)) && !f.isFinished() {
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
		h, err := f.next(name)
		switch {
		case err != nil:
			return err
		case !f.fits(h.kind):
			return damaged("section %v stands where %s should", h.kind, name)
		case h.kind == endSection:
			return f.end(h)
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

func (f *fileReader) fits(kind sectionKind) bool {
	if expected := f.expected(); !f.has[symbolSection] {
		return kind.String() == expected
	}
	switch kind {
	case figuresSection, programSection, symbolSection, segmentSection:
		return f.version >= withSegments && len(f.s.Threads) == 0
	}
	return kind == threadSection || kind == endSection
}

// read reads the section behind a header.
func (f *fileReader) read(h sectionHeader, name string) error {
	switch h.kind {
	case figuresSection:
		var m FiguresSection
		if err := f.message(h, name, &m); err != nil {
			return err
		}
		f.s.Figures = decodeFigures(&m)
	case programSection:
		var m ProgramSection
		if err := f.message(h, name, &m); err != nil {
			return err
		}
		if err := f.rows.program(&m); err != nil {
			return damaged("section program: %w", err)
		}
		if err := decodeProgram(f.s, &m); err != nil {
			return damaged("section program: %w", err)
		}
	case symbolSection:
		var m SymbolSection
		if err := f.message(h, name, &m); err != nil {
			return err
		}
		if err := f.rows.symbols(len(m.Kind)); err != nil {
			return damaged("section symbols: %w", err)
		}
		symbols, err := decodeSymbols(&m)
		if err != nil {
			return damaged("section symbols: %w", err)
		}
		f.s.Symbols = append(f.s.Symbols, symbols...)
	case segmentSection:
		segment, err := f.segment(h, fmt.Sprintf("segment %d", len(f.all)))
		if err != nil {
			return err
		}
		f.all, f.segments = append(f.all, segment), append(f.segments, segment)
		return nil
	case threadSection:
		var m ThreadSection
		if err := f.message(h, name, &m); err != nil {
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
func (f *fileReader) snapshot() (*Snapshot, error) {
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
		if t.Grammar.segments == nil || symbols > f.atOnce {
			continue
		}
		joined, err := t.Grammar.together()
		var load *LoadError
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
