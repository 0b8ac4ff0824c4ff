package format

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"wpptrace/compress/wpp"
)

// A storedSection is what is stored of a section of another package: it is copied from file to file
// as it is, and read when it is asked for.
type storedSection struct {
	sectionHeader
	file io.ReaderAt
	at   int64 // of what is stored
}

// Data returns what is stored, decompressed.
func (s *storedSection) Data() ([]byte, error) {
	data, err := s.read()
	if err != nil {
		return nil, &wpp.LoadError{Err: err, Path: nameOf(s.file)}
	}
	return data, nil
}

// read is Data, whose errors complete the sentence that begins with "snapshot" and its name.
func (s *storedSection) read() ([]byte, error) {
	var stored bytes.Buffer
	stored.Grow(int(s.stored) + bytes.MinRead) // the file was so long
	if err := s.copyTo(&stored); err != nil {
		return nil, err
	}
	if s.raw == 0 {
		return stored.Bytes(), nil
	}
	raw, err := decompress(stored.Bytes(), s.raw)
	if err != nil {
		return nil, damaged("section %v at byte %d: %w", s.kind, s.at, err)
	}
	return raw, nil
}

// copyTo writes what is stored, and fails where it is not what was stored.
func (s *storedSection) copyTo(w io.Writer) error {
	checked := crc32.New(castagnoli)
	from := io.TeeReader(io.NewSectionReader(s.file, s.at, int64(s.stored)), checked)
	n, err := io.Copy(w, from)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be copied: section %v at byte %d: %w", s.kind, s.at, err)
	case n < int64(s.stored):
		return cutOff(s.kind.String(), n, s.stored)
	case checked.Sum32() != s.storedChecked:
		return damaged("section %v at byte %d: checksum does not match", s.kind, s.at)
	}
	return nil
}

// An unknownError is the kind of a section without which a snapshot cannot be understood.
type unknownError sectionKind

func (e unknownError) Error() string {
	return fmt.Sprintf("needs a reader that knows sections of kind %d, "+
		"which this wpptrace does not: use a newer wpptrace", wpp.SectionKind(e).Number())
}

// other takes the section behind a header that is not the format's own, and leaves its data where
// it is.
func (f *fileReader) other(h sectionHeader) error {
	kind := wpp.SectionKind(h.kind)
	if !slices.Contains(f.known, kind) {
		if kind.IsCritical() {
			return unknownError(kind)
		}
		if !slices.Contains(f.s.Skipped, kind) {
			f.s.Skipped = append(f.s.Skipped, kind)
		}
	}
	file, at, err := f.frame.locate(h, h.kind.String())
	if err != nil {
		return err
	}
	s := &storedSection{sectionHeader: h, file: file, at: at}
	f.s.Sections = append(f.s.Sections, wpp.StoredSection(kind, s))
	return nil
}

// checkSections leaves out of a file that is cut off the sections that are not as they were
// written: a system that went down may have written the end of a file before the middle.
func (f *fileReader) checkSections() {
	f.s.Sections = slices.DeleteFunc(f.s.Sections, func(s *wpp.Section) bool {
		stored, ok := s.Source().(*storedSection)
		return ok && stored.copyTo(io.Discard) != nil
	})
}

// sections writes sections of other packages that are not written yet.
func (f *Writer) sections(list []*wpp.Section) error {
	for _, s := range list {
		if f.others[s] != nil {
			continue
		}
		h, err := f.frame.other(s)
		if err != nil {
			return err
		}
		f.others[s] = &storedSection{sectionHeader: h, at: f.frame.at - int64(h.stored)}
	}
	return nil
}

// Store has sections that are written be in the file that is written, and not in memory any more.
func (f *Writer) Store(list []*wpp.Section, file io.ReaderAt) {
	for _, s := range list {
		stored := *f.others[s]
		stored.file = file
		s.Store(&stored)
	}
}

// other writes a section of another package: as it is stored, where it is.
func (w *frameWriter) other(s *wpp.Section) (h sectionHeader, err error) {
	if stored, ok := s.Source().(*storedSection); ok {
		if err := w.write(stored.sectionHeader); err != nil {
			return h, err
		}
		return stored.sectionHeader, stored.copyTo(w)
	}
	data, err := s.Data()
	if err != nil {
		return h, err
	}
	kind := sectionKind(s.Kind())
	if len(data) > maxRaw {
		return h, fmt.Errorf("section %v is larger than %d MiB before compression", kind, maxRaw>>20)
	}
	var stored []byte
	if len(data) > 0 {
		stored = w.zstd.EncodeAll(data, nil)
	}
	h = sectionHeader{kind, uint32(len(stored)), uint32(len(data)), checksum(stored)}
	return h, w.write(h, stored)
}

// Write writes bytes that belong to a section whose header is written.
func (w *frameWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.at += int64(n)
	return n, err
}
