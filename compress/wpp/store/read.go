package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
)

// ReadFile reads a snapshot from a file, as format.Read does; its errors name the file and say what
// to do. The file stays open as long as segments or sections of it may be needed.
func ReadFile(path string, known ...wpp.SectionKind) (*wpp.Snapshot, error) {
	return read(path, format.Read, known)
}

// ReadParts is ReadFile for who needs few parts of a file: see format.ReadParts.
func ReadParts(path string, known ...wpp.SectionKind) (*wpp.Snapshot, error) {
	return read(path, format.ReadParts, known)
}

func read(path string, by func(io.Reader, ...wpp.SectionKind) (*wpp.Snapshot, error),
	known []wpp.SectionKind) (*wpp.Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	s, err := by(f, known...)
	if s == nil || !s.InSegments() && len(s.Sections) == 0 {
		f.Close()
	}
	if err != nil {
		return s, fileError(path, err)
	}
	return s, nil
}

// fileError names the file and the remedy in an error of opening or reading it.
func fileError(path string, err error) error {
	says := false
	if e := (*format.Error)(nil); errors.As(err, &e) {
		err, says = e.Err, e.SaysRemedy()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read snapshot: %w: only its owner may read it: use sudo, or give it "+
			"away with chown", err)
	case errors.As(err, new(*fs.PathError)):
		return fmt.Errorf("read snapshot: %w: name a file that wpptrace has recorded", err)
	case errors.Is(err, format.ErrNoSnapshot):
		return fmt.Errorf("snapshot %s %w: name a file that wpptrace has recorded", path, err)
	case says:
		return fmt.Errorf("snapshot %s %w", path, err)
	}
	return fmt.Errorf("snapshot %s %w: copy it again from where it was recorded, or record anew",
		path, err)
}
