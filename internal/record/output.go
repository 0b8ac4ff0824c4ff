package record

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/remedy"
	"wpptrace/loader/privilege"
)

// newDraft returns the draft of a recording's snapshot, which is written as the user.
func newDraft(path string) *store.Draft { return store.NewDraftBy(privilege.AsUser, path) }

// CheckOutput fails when a snapshot could not be written to path: better now than after the
// recording.
func CheckOutput(path string) error {
	st, err := os.Stat(path)
	if err == nil && !st.Mode().IsRegular() {
		return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: it is not a regular file", path)
	}
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() == fs.ModeSymlink {
		// /dev/stdout of a shell that has redirected it, for one
		return remedy.Errorf(remedy.LinkTarget,
			"write snapshot %s: it is a link, which is not written through", path)
	}
	if st, err := os.Lstat(store.Old(path)); err == nil && !st.Mode().IsRegular() &&
		st.Mode().Type() != fs.ModeSymlink {
		return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: one that is there becomes %s, "+
			"which is not a regular file", path, store.Old(path))
	}
	dir, base := filepath.Split(path)
	f, err := os.CreateTemp(filepath.Clean(dir), "."+base+".*")
	if err != nil {
		return WriteError(path, err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return err
	}
	if _, err := os.Lstat(path); err != nil { // there is nothing to be replaced
		return nil
	}
	for _, name := range []string{path, store.Old(path)} {
		if err := privilege.CheckReplace(name); err != nil {
			return remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: %w", name, err)
		}
	}
	return nil
}

// WriteError is the error of a snapshot that the system does not write. Its temporary file is none
// of the user's business, unless what was recorded is in it.
func WriteError(path string, err error) error {
	var why unix.Errno
	if !errors.As(err, &why) {
		return err
	}
	plain := remedy.Errorf(remedy.OtherSnapshot, "write snapshot %s: %w", path, why)
	var kept *store.KeptError
	if errors.As(err, &kept) {
		return &store.KeptError{Err: plain, File: kept.File}
	}
	return plain
}

// collide reports whether a raw trace and a snapshot would be one file, or what one of them
// replaces would be the other. raw may be "".
func collide(raw, snapshot string) bool {
	return raw != "" && (isAt(raw, snapshot) || isAt(raw, store.Old(snapshot)) ||
		isAt(store.Old(raw), snapshot))
}

// isAt reports whether a trace at path would be one file with another.
func isAt(path, other string) bool {
	a, err := statAsUser(filepath.Dir(path))
	if err != nil {
		return false
	}
	b, err := statAsUser(filepath.Dir(other))
	return err == nil && os.SameFile(a, b) && filepath.Base(path) == filepath.Base(other)
}

// statAsUser is os.Stat as the user.
func statAsUser(path string) (info fs.FileInfo, err error) {
	err = privilege.AsUser(func() error {
		info, err = os.Stat(path)
		return err
	})
	return info, err
}
