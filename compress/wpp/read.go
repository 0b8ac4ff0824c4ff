package wpp

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/protobuf/proto"
)

// Read reads a snapshot. It trusts nothing that it reads: a file that is truncated, damaged or made to harm gives an error of one line that
// names the section, and costs memory and time in proportion to what it decompresses to, at most 1 GiB of
// sections and of grammars, at 16 bytes a symbol.
func Read(r io.Reader) (*Snapshot, error) {
	s, err := read(r, maxRaw)
	if err != nil {
		return nil, fmt.Errorf("snapshot %w", err)
	}
	return s, nil
}

// ReadFile reads a snapshot from a file, as Read does; its errors name the file and say what to do.
func ReadFile(path string) (*Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	defer f.Close()
	s, err := read(f, maxRaw)
	if err != nil {
		return nil, fileError(path, err)
	}
	return s, nil
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
	}
	return fmt.Errorf("snapshot %s %w: copy it again from where it was recorded, or record anew", path, err)
}

// read's errors complete the sentence that begins with "snapshot" and its name.
func read(r io.Reader, maxRaw int) (*Snapshot, error) {
	s, err := readSections(r, maxRaw)
	if err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, damaged("%w", err)
	}
	return s, nil
}

func readSections(r io.Reader, maxRaw int) (*Snapshot, error) {
	f, err := newFrameReader(r, maxRaw)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{}
	var figures FiguresSection
	if err := f.expect(figuresSection, &figures); err != nil {
		return nil, err
	}
	s.Figures = decodeFigures(&figures)
	var program ProgramSection
	if err := f.expect(programSection, &program); err != nil {
		return nil, err
	}
	if err := decodeProgram(s, &program); err != nil {
		return nil, damaged("section program: %w", err)
	}
	var symbols SymbolSection
	if err := f.expect(symbolSection, &symbols); err != nil {
		return nil, err
	}
	if s.Symbols, err = decodeSymbols(&symbols); err != nil {
		return nil, damaged("section symbols: %w", err)
	}
	for {
		name := fmt.Sprintf("thread %d", len(s.Threads))
		h, err := f.next(name)
		switch {
		case err != nil:
			return nil, err
		case h.kind == endSection:
			return s, f.end(h)
		case h.kind != threadSection:
			return nil, damaged("section %v stands where %s should", h.kind, name)
		}
		var thread ThreadSection
		if err := f.message(h, name, &thread); err != nil {
			return nil, err
		}
		t, err := decodeThread(&thread, &f.left)
		if err != nil {
			return nil, damaged("section %s: %w", name, err)
		}
		s.Threads = append(s.Threads, t)
	}
}

// expect reads a section that must come next.
func (r *frameReader) expect(kind sectionKind, message proto.Message) error {
	h, err := r.next(kind.String())
	if err != nil {
		return err
	}
	if h.kind != kind {
		return damaged("section %v stands where %v should", h.kind, kind)
	}
	return r.message(h, kind.String(), message)
}
