package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// An elfFile is a file whose sections have not been read.
type elfFile struct {
	*elf.File
	size int64 // bytes
}

// debugRoot is where distributions install the debug information of what they strip, by build id.
var debugRoot = "/usr/lib/debug"

// withCompanion hands the image's debug information to a function, if it is in a file of its own: fs.ErrNotExist if it is not. The file is found by the build id
// alone, and has to bear it: nothing that the image says names a path.
func (im *Image) withCompanion(read func(elfFile) error) (err error) {
	const least = 4 // digits
	if len(im.BuildID) < least {
		return fs.ErrNotExist
	}
	f, size, err := OpenRegular(filepath.Join(debugRoot, ".build-id", im.BuildID[:2], im.BuildID[2:]+".debug"))
	if err != nil {
		return err
	}
	defer f.Close()
	defer func() { // debug/elf panics on some hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("read %s: malformed elf file: %v", f.Name(), p)
		}
	}()
	if err := checkSections(f); err != nil {
		return fmt.Errorf("read %s: malformed elf file: %w", f.Name(), err)
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("read %s: malformed elf file: %w", f.Name(), err)
	}
	companion := elfFile{file, size}
	if s := file.Section(".note.gnu.build-id"); s != nil {
		if note, err := companion.plainSection(s); err == nil && buildID(note) == im.BuildID {
			return read(companion)
		}
	}
	return fmt.Errorf("%s is not of build id %s", f.Name(), im.BuildID)
}

// staticSymbols reads .symtab, that of the companion where the file has been stripped of its own. A companion that is not good is none.
func (im *Image) staticSymbols() (symbols []symbolEntry, err error) {
	if im.file.SectionByType(elf.SHT_SYMTAB) != nil {
		return im.file.symbolTable(elf.SHT_SYMTAB)
	}
	err = im.withCompanion(func(companion elfFile) (err error) {
		symbols, err = companion.symbolTable(elf.SHT_SYMTAB)
		return err
	})
	if err != nil {
		return nil, nil
	}
	return symbols, nil
}

// readLines reads the line tables, of the companion where the file has none.
func (im *Image) readLines() (lines *Lines, err error) {
	read := func(f elfFile) (err error) {
		lines, err = im.linesOf(f)
		return err
	}
	if im.file.hasLines() {
		err = read(im.file)
	} else {
		err = im.withCompanion(read)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoLines
	}
	if err != nil {
		return nil, fmt.Errorf("read lines of %s: %w", im.Name, err)
	}
	return lines, nil
}
