package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A tree is the files that a machine is to have, in a directory.
type tree struct{ dir string }

// newTree makes one with the directories that Debian has, and its links to them.
func newTree(dir string) (*tree, error) {
	for _, d := range []string{"dev", "proc", "sys", "tmp", "etc", "usr/bin", "usr/lib",
		"usr/lib64"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{"bin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+d, filepath.Join(dir, d)); err != nil {
			return nil, err
		}
	}
	return &tree{dir}, nil
}

// at is the place of one of the machine's files.
func (t *tree) at(path string) string { return filepath.Join(t.dir, path) }

// add has the machine have a file of ours, or a directory, at the same path, with the libraries
// that it needs if it is a program.
func (t *tree) add(ctx context.Context, path string) error {
	return filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if err := t.copy(path); err != nil {
			return err
		}
		libraries, err := librariesOf(ctx, path)
		for _, l := range libraries {
			err = errors.Join(err, t.copy(l))
		}
		return err
	})
}

// copy copies a file, and the link by which it is called, if it is one.
func (t *tree) copy(path string) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return err
	}
	path = filepath.Join(dir, filepath.Base(path))
	if err := os.MkdirAll(t.at(dir), 0o755); err != nil {
		return err
	}
	if to, err := os.Readlink(path); err == nil {
		if err := os.Symlink(to, t.at(path)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		return t.copy(to)
	}
	return copyFile(path, t.at(path))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, st.Mode())
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

var loaded = regexp.MustCompile(`(/\S+) \(0x[0-9a-f]+\)\n`)

// librariesOf lists what a program is linked with; nothing for what is no program, or a static one.
func librariesOf(ctx context.Context, path string) (list []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil || string(magic) != "\x7fELF" {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, "ldd", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("not a dynamic executable")), bytes.Contains(out,
		[]byte("statically linked")):
		return nil, nil
	case err != nil || bytes.Contains(out, []byte("not found")):
		return nil, fmt.Errorf("list the libraries of %s: %w\n%s", path, err, out)
	}
	for _, match := range loaded.FindAllStringSubmatch(string(out), -1) {
		list = append(list, match[1])
	}
	return list, nil
}

// pack writes the tree as the kernel unpacks it at boot.
func (t *tree) pack(ctx context.Context, to string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	var names strings.Builder
	err = filepath.WalkDir(t.dir, func(path string, _ fs.DirEntry, err error) error {
		name, _ := filepath.Rel(t.dir, path)
		names.WriteString(name + "\x00")
		return err
	})
	cmd := exec.CommandContext(ctx, "cpio", "--quiet", "--null", "--create", "--format=newc",
		"--owner=+0:+0")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.dir, strings.NewReader(names.String()), out,
		os.Stderr
	if err = errors.Join(err, cmd.Run(), out.Close()); err != nil {
		return fmt.Errorf("pack the files of a machine: %w", err)
	}
	return nil
}
