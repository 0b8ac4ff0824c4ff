package image

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// An elfFile is a file whose sections have not been read.
type elfFile struct {
	parsed    *elf.File
	size      int64 // bytes
	installed bool  // under debugRoot
}

// debugRoot is where distributions install the debug information of what they strip, by build id.
var debugRoot = installedAt

const installedAt = "/usr/lib/debug"

// companionOf is the name under debugRoot of the debug information of what bears a build id, in
// hex.
func companionOf(id string) (name string, ok bool) {
	const least = 4 // digits
	if len(id) < least {
		return "", false
	}
	return path.Join(".build-id", id[:2], id[2:]+".debug"), true
}

// withCompanion hands the image's debug information to a function, if it is in a file of its own:
// fs.ErrNotExist if it is not. The file is found by the build id alone, and has to bear it: nothing
// that the image says names a path.
func (im *Image) withCompanion(read func(elfFile) error) error {
	name, ok := companionOf(im.BuildID)
	if !ok {
		return fs.ErrNotExist
	}
	return withInstalled(name, func(f elfFile) error {
		if s := f.parsed.Section(".note.gnu.build-id"); s != nil {
			if note, err := f.plainSection(s); err == nil && buildID(note) == im.BuildID {
				return read(f)
			}
		}
		return fmt.Errorf("it is not of build id %s", im.BuildID)
	})
}

// withInstalled hands a file under debugRoot to a function, and makes errors of what is wrong with
// it, which name it.
func withInstalled(name string, read func(elfFile) error) error {
	f, size, err := openInstalled(name)
	if err == nil {
		err = errors.Join(readInstalled(f, size, read), f.Close())
	}
	var bare *fs.PathError // which says "statat", and no whole path
	if errors.As(err, &bare) {
		err = bare.Err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path.Join(debugRoot, name), err)
	}
	return nil
}

func readInstalled(f *os.File, size int64, read func(elfFile) error) (err error) {
	defer func() { // debug/elf panics on some hostile files
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed elf file: %v", p)
		}
	}()
	if err := checkSections(f); err != nil {
		return fmt.Errorf("malformed elf file: %w", err)
	}
	file, err := elf.NewFile(f)
	if err != nil {
		return fmt.Errorf("malformed elf file: %w", err)
	}
	return read(elfFile{file, size, true})
}

// openInstalled opens a regular file under debugRoot, which the caller closes. Links are followed
// within it alone, and only those that root has made: no directory that others may change is looked
// into, and nothing of theirs is opened, nor a device, which may notice.
func openInstalled(name string) (f *os.File, size int64, err error) {
	root, err := os.OpenRoot(debugRoot)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	for dir := name; dir != "."; {
		dir = path.Dir(dir)
		if info, err := root.Stat(dir); err != nil {
			return nil, 0, err
		} else if !isRoots(info) || info.Mode().Perm()&0o022 != 0 {
			return nil, 0, errors.New("its directory is not root's alone")
		}
	}
	for _, look := range []func(string) (fs.FileInfo, error){root.Lstat, root.Stat} {
		if info, err := look(name); err != nil {
			return nil, 0, err
		} else if !isRoots(info) {
			return nil, 0, errors.New("it is not root's")
		} else if info.Mode().Type()&^fs.ModeSymlink != 0 {
			return nil, 0, errors.New("it is no regular file")
		}
	}
	f, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	return regular(f)
}

// isRoots reports whether a file is root's, or our own, who read it.
func isRoots(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == os.Geteuid())
}

// openSupplement reads what a file's debug information shares with other files' (dwz(1)), if it
// does. That is found by its build id, or, for a file that is installed itself, under the name that
// it gives.
func (f elfFile) openSupplement(d *debugData) error {
	s := f.parsed.Section(".gnu_debugaltlink")
	if s == nil {
		return nil
	}
	link, err := f.plainSection(s)
	if err != nil {
		return fmt.Errorf("section %s: %w", s.Name, err)
	}
	name, id, _ := bytes.Cut(link, []byte{0})
	read := func(shared elfFile) (err error) {
		s := shared.parsed.Section(".note.gnu.build-id")
		if s == nil {
			return errors.New("it has no build id")
		}
		if note, err := shared.plainSection(s); err != nil ||
			buildID(note) != hex.EncodeToString(id) {
			return fmt.Errorf("it is not of build id %x", id)
		}
		d.supplement, err = shared.openDWARF()
		return err
	}
	err = fs.ErrNotExist
	if byID, ok := companionOf(hex.EncodeToString(id)); ok {
		err = withInstalled(byID, read)
	}
	if below, ok := strings.CutPrefix(string(name), installedAt+"/"); ok && f.installed &&
		errors.Is(err, fs.ErrNotExist) {
		err = withInstalled(below, read)
	}
	if err != nil {
		return fmt.Errorf("names are in %q of build id %x: %w", name, id, err)
	}
	return nil
}

// staticSymbols reads .symtab, that of the companion where the file has been stripped of its own. A
// companion that is not good is none, and said to be so.
func (im *Image) staticSymbols() (symbols symbolTable, err error) {
	if im.file.parsed.SectionByType(elf.SHT_SYMTAB) != nil {
		return im.file.symbolTable(elf.SHT_SYMTAB)
	}
	err = im.withCompanion(func(companion elfFile) (err error) {
		symbols, err = companion.symbolTable(elf.SHT_SYMTAB)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		im.passedOver = err
	}
	if err != nil {
		return symbolTable{}, nil
	}
	return symbols, nil
}

// PassedOver returns why the file's debug information under /usr/lib/debug was not used for
// symbols, nil where it was, or was not looked for, or is not there.
func (im *Image) PassedOver() error { return im.passedOver }

// withDebug hands the file that has the debug information to a function: the companion where the
// file itself has none.
func (im *Image) withDebug(read func(elfFile) error) error {
	if im.file.hasLines() {
		return read(im.file)
	}
	return im.withCompanion(read)
}

// readLines reads the line tables.
func (im *Image) readLines() (lines *Lines, err error) {
	err = im.withDebug(func(f elfFile) (err error) {
		lines, err = im.linesOf(f)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNoLines
	}
	if err != nil {
		return nil, fmt.Errorf("read lines of %s: %w", im.Name, err)
	}
	return lines, nil
}
