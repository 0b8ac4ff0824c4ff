package store

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"wpptrace/internal/remedy"
)

// least is how many bytes of room there have to be for a snapshot: few are smaller.
const least = 64 << 10

// CheckOutput fails when a snapshot could not be written to path, for lack of room too: better now
// than after the recording. checkReplace fails for what this process could not put another file in
// the place of; it is called for what is at path and for what is at path.old. Errors have a remedy.
func CheckOutput(path string, checkReplace func(name string) error) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: it is not a regular file",
			path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == fs.ModeSymlink {
		// /dev/stdout of a shell that has redirected it, for one
		return remedy.Errorf(remedy.LinkTarget,
			"write snapshot %s: it is a link, which is not written through", path)
	}
	if st, err := os.Lstat(Old(path)); err == nil && !st.Mode().IsRegular() &&
		st.Mode().Type() != fs.ModeSymlink {
		return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: one that is there becomes "+
			"%s, which is not a regular file", path, Old(path))
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+base+".*")
	if err != nil {
		return WriteError(path, err)
	}
	_, err = f.Write(make([]byte, least))
	closed := f.Close() // which finds out about room on some file systems
	if err := cmp.Or(err, closed, os.Remove(f.Name())); err != nil {
		_ = os.Remove(f.Name())
		return WriteError(path, err)
	}
	if _, err := os.Lstat(path); err != nil { // there is nothing to be replaced
		return nil
	}
	for _, name := range []string{path, Old(path)} {
		if err := checkReplace(name); err != nil {
			return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: %w", name, err)
		}
	}
	return nil
}

// WriteError is the error of a snapshot that the system does not write. Its temporary file is none
// of the user's business, unless what was recorded is in it. It has a remedy.
func WriteError(path string, err error) error {
	var why syscall.Errno
	if !errors.As(err, &why) {
		return err
	}
	plain := remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: %w", path, why)
	var kept *KeptError
	if errors.As(err, &kept) {
		return &KeptError{Err: plain, File: kept.File}
	}
	return plain
}
