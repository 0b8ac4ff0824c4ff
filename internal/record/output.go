package record

import (
	"io/fs"
	"os"
	"path/filepath"

	"wpptrace/compress/wpp/store"
	"wpptrace/loader/privilege"
)

// newDraft returns the draft of a recording's snapshot, which is written as the user.
func newDraft(path string) *store.Draft { return store.NewDraftBy(privilege.AsUser, path) }

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
