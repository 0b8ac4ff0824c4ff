package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"wpptrace/compress/wpp"
)

// oldSuffix is appended to the name of a snapshot that another one replaces.
const oldSuffix = ".old"

// Old is the name that the file at path gets when a snapshot replaces it.
func Old(path string) string { return path + oldSuffix }

// WriteFile writes a snapshot to a file, mode 0600, atomically and durably: to a temporary file in
// the same directory, which is synced and then renamed. A file that was there becomes path.old, in
// the place of any older one. On an error the file that was there is still there, whole, and the
// temporary file is gone; if only syncing the directory failed, the new file may be in place, the
// one before at path.old. Only a regular file or a symbolic link is replaced, and a link is not
// followed.
func WriteFile(path string, s *wpp.Snapshot) error {
	return WriteFileContext(context.Background(), path, s)
}

// WriteFileContext is WriteFile, but that it gives up, with the context's error, when the context
// is done before all is written.
func WriteFileContext(ctx context.Context, path string, s *wpp.Snapshot) error {
	return NewDraft(path).Finish(ctx, s)
}

// files is what a Draft needs of a file system; tests make each step fail.
type files interface {
	Lstat(name string) (fs.FileInfo, error)
	CreateTemp(dir, pattern string) (file, error)
	Link(from, to string) error
	Rename(from, to string) error
	Remove(name string) error
	SyncDir(dir string) error
}

type file interface {
	io.WriteCloser
	io.ReaderAt
	Name() string
	Sync() error
}

// checkPlace fails unless path is a regular file, a link, or nothing.
func checkPlace(fsys files, path string) (exists bool, err error) {
	info, err := fsys.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() && info.Mode().Type() != fs.ModeSymlink:
		return true, errors.New("is not a regular file")
	}
	return true, nil
}

// place renames a temporary file to path, and reports whether it is there now, be it that the
// directory could not be synced.
func place(fsys files, path, temporary string) (placed bool, err error) {
	exists, err := checkPlace(fsys, path)
	switch {
	case err != nil:
	case exists:
		err = replace(fsys, path, temporary)
	default:
		err = fsys.Rename(temporary, path)
	}
	if err != nil {
		return false, err
	}
	return true, fsys.SyncDir(dirOf(path))
}

func dirOf(path string) string {
	if dir, _ := filepath.Split(path); dir != "" {
		return dir
	}
	return "."
}

// replace renames temporary to path after it has given the file at path a second name, path.old; so
// there is no moment without a snapshot at path. Where the file system has no hard links there is.
func replace(fsys files, path, temporary string) error {
	old := Old(path)
	second := temporary + oldSuffix
	if fsys.Link(path, second) == nil {
		err := fsys.Rename(second, old)
		// A rename leaves both names where they are when they name the same file already.
		if removeErr := fsys.Remove(second); err == nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = removeErr
		}
		if err != nil {
			return err
		}
		return fsys.Rename(temporary, path)
	}
	if err := fsys.Rename(path, old); err != nil {
		return err
	}
	if err := fsys.Rename(temporary, path); err != nil {
		return also(err, fsys.Rename(old, path))
	}
	return nil
}

// also adds to an error, in the same line, one that cleaning up after it gave.
func also(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return fmt.Errorf("%w; then %w", err, cleanup)
}

// filesBy is a file system each access to which is made by another function.
type filesBy struct {
	fsys files
	by   func(access func() error) error
}

func (f filesBy) Lstat(name string) (info fs.FileInfo, err error) {
	err = f.by(func() error {
		info, err = f.fsys.Lstat(name)
		return err
	})
	return info, err
}

func (f filesBy) CreateTemp(dir, pattern string) (made file, err error) {
	err = f.by(func() error {
		made, err = f.fsys.CreateTemp(dir, pattern)
		return err
	})
	return made, err
}

func (f filesBy) Link(from, to string) error {
	return f.by(func() error { return f.fsys.Link(from, to) })
}

func (f filesBy) Rename(from, to string) error {
	return f.by(func() error { return f.fsys.Rename(from, to) })
}

func (f filesBy) Remove(name string) error {
	return f.by(func() error { return f.fsys.Remove(name) })
}

func (f filesBy) SyncDir(dir string) error {
	return f.by(func() error { return f.fsys.SyncDir(dir) })
}

// osFiles is the file system of the machine.
type osFiles struct{}

func (osFiles) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (osFiles) CreateTemp(dir, pattern string) (file, error) { return os.CreateTemp(dir, pattern) }
func (osFiles) Link(from, to string) error                   { return os.Link(from, to) }
func (osFiles) Rename(from, to string) error                 { return os.Rename(from, to) }
func (osFiles) Remove(name string) error                     { return os.Remove(name) }

// SyncDir makes renames in a directory durable. Windows cannot sync directories.
func (osFiles) SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
