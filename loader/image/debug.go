package image

import (
	"debug/dwarf"
	"errors"
	"fmt"
	"io/fs"
)

// A Debug is the debug information of an image, while it is read. What reading it may cost is
// bounded, whatever a file claims: see the errors.
type Debug struct {
	data *debugData
	file elfFile
}

// A Unit is a compilation unit.
type Unit struct {
	Start, First dwarf.Offset // of its header, and of its first entry
	Version      int          // of DWARF
}

// Debug hands the image's debug information to a function, and makes errors of the panics of
// debug/dwarf on some hostile files. The error is ErrNoLines where there is none.
func (im *Image) Debug(read func(*Debug) error) error {
	err := im.withDebug(func(f elfFile) (err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("malformed debug information: %v", p)
			}
		}()
		if f.debugSection("info") == nil {
			return ErrNoLines
		}
		data, err := f.openDWARF()
		if err != nil {
			return err
		}
		_ = f.openSupplement(data) // names that it has are not known then
		return read(&Debug{data, f})
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoLines
	}
	return err
}

// Units are in the order of their places.
func (d *Debug) Units() (list []Unit) {
	for _, u := range d.data.units {
		list = append(list, Unit{u.start, u.first, u.version})
	}
	return list
}

// Section is one that the line tables and entries do not need, by its name without ".debug_"; nil:
// there is none.
func (d *Debug) Section(name string) ([]byte, error) {
	s := d.file.debugSection(name)
	if s == nil {
		return nil, nil
	}
	data, err := d.file.unpack(s, maxDebug)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", s.Name, err)
	}
	return data, nil
}

// Entry reads the next entry, nil behind the last.
func (d *Debug) Entry(r *dwarf.Reader) (*dwarf.Entry, error) { return d.data.entry(r) }

// EntryAt reads the entry at an offset, and returns a reader of those that follow.
func (d *Debug) EntryAt(at dwarf.Offset) (*dwarf.Reader, *dwarf.Entry, error) {
	return d.data.entryAt(at)
}

// Ranges are the addresses that an entry covers.
func (d *Debug) Ranges(e *dwarf.Entry) ([][2]uint64, error) { return d.data.rangesOf(e) }

// RoutineName is the name of the routine that an entry is of, or refers to, demangled.
func (d *Debug) RoutineName(e *dwarf.Entry) (string, error) {
	return d.data.routineName(naming{entry: e.Offset})
}

// Lines reads the line table of a unit, by its first entry; nil: it has none.
func (d *Debug) Lines(unit *dwarf.Entry) (*dwarf.LineReader, error) {
	return d.data.data.LineReader(unit)
}

// Referred is the entry of the same file that one refers to for what it does not say itself.
func Referred(e *dwarf.Entry) (dwarf.Offset, bool) {
	next, ok := referred(e, false)
	return next.entry, ok && !next.shared
}

// HasCode reports whether an entry says that it has code.
func HasCode(e *dwarf.Entry) bool { return hasCode(e) }
