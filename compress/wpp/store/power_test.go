package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/wpptest"
)

// volatileFiles is a file system in memory that forgets, when the power fails at a step, what was
// not synced: what a file has got since it was last synced, and the last of what was done to the
// directory. From then on all fails.
type volatileFiles struct {
	names   map[string]*volatileFile
	changes []map[string]*volatileFile // of the directory, each at once; nil: a name is removed
	durable int                        // changes
	step    int
	dies    int
	noLinks bool
}

type volatileFile struct {
	fsys   *volatileFiles
	name   string
	data   []byte
	synced int // bytes
}

func newVolatileFiles(path string, old []byte) *volatileFiles {
	f := &volatileFiles{names: map[string]*volatileFile{}}
	f.change(map[string]*volatileFile{path: {fsys: f, name: path, data: old, synced: len(old)}})
	f.durable = 1
	return f
}

func (f *volatileFiles) dead() bool { return f.dies > 0 && f.step >= f.dies }

func (f *volatileFiles) next() error {
	if f.step++; f.dead() {
		return errStep
	}
	return nil
}

func (f *volatileFiles) change(c map[string]*volatileFile) {
	f.changes = append(f.changes, c)
	apply(f.names, c)
}

func apply(names, change map[string]*volatileFile) {
	maps.Copy(names, change)
	maps.DeleteFunc(names, func(_ string, v *volatileFile) bool { return v == nil })
}

func (f *volatileFiles) Lstat(name string) (fs.FileInfo, error) {
	if f.names[name] == nil {
		return nil, fs.ErrNotExist
	}
	return os.Stat(os.Args[0]) // some regular file
}

func (f *volatileFiles) CreateTemp(dir, pattern string) (file, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	v := &volatileFile{fsys: f, name: filepath.Join(dir, strings.Replace(pattern, "*", "1", 1))}
	f.change(map[string]*volatileFile{v.name: v})
	return v, nil
}

func (f *volatileFiles) Link(from, to string) error {
	if f.noLinks {
		return errors.ErrUnsupported
	}
	return f.rename(map[string]*volatileFile{to: f.names[from]})
}

func (f *volatileFiles) Rename(from, to string) error {
	if f.names[from] == f.names[to] {
		return f.next()
	}
	return f.rename(map[string]*volatileFile{from: nil, to: f.names[from]})
}

func (f *volatileFiles) Remove(name string) error {
	if f.names[name] == nil {
		return fs.ErrNotExist
	}
	return f.rename(map[string]*volatileFile{name: nil})
}

func (f *volatileFiles) rename(change map[string]*volatileFile) error {
	if err := f.next(); err != nil {
		return err
	}
	f.change(change)
	return nil
}

func (f *volatileFiles) SyncDir(string) error {
	if err := f.next(); err != nil {
		return err
	}
	f.durable = len(f.changes)
	return nil
}

func (v *volatileFile) Name() string { return v.name }
func (v *volatileFile) Close() error { return nil }
func (v *volatileFile) ReadAt(p []byte, at int64) (n int, err error) {
	return bytes.NewReader(v.data).ReadAt(p, at)
}

func (v *volatileFile) Write(p []byte) (int, error) {
	if err := v.fsys.next(); err != nil {
		v.data = append(v.data, p[:len(p)/2]...)
		return len(p) / 2, err
	}
	v.data = append(v.data, p...)
	return len(p), nil
}

func (v *volatileFile) Sync() error {
	if err := v.fsys.next(); err != nil {
		return err
	}
	v.synced = len(v.data)
	return nil
}

// afterwards hands over what may be in the directory when the power is back.
func (f *volatileFiles) afterwards(each func(how string, files map[string][]byte)) {
	for n := f.durable; n <= len(f.changes); n++ {
		names := map[string]*volatileFile{}
		for _, c := range f.changes[:n] {
			apply(names, c)
		}
		for how, content := range map[string]func(*volatileFile) []byte{
			"is cut off": func(v *volatileFile) []byte { return v.data[:v.synced] },
			"is zero": func(v *volatileFile) []byte {
				return append(slices.Clone(v.data[:v.synced]),
					make([]byte, len(v.data)-v.synced)...)
			},
			"has a hole": func(v *volatileFile) []byte {
				b := slices.Clone(v.data)
				clear(b[v.synced : v.synced+(len(b)-v.synced)/2])
				return b
			},
			"is there": func(v *volatileFile) []byte { return v.data },
		} {
			files := map[string][]byte{}
			for name, v := range names {
				files[name] = content(v)
			}
			each(fmt.Sprintf("step %d, %d of %d changes, what was not synced %s", f.step, n,
				len(f.changes), how), files)
		}
	}
}

func pidIn(file []byte) int {
	s, err := format.Read(bytes.NewReader(file))
	if err != nil {
		return 0
	}
	return s.Figures.PID
}

// The power fails at any step of writing a snapshot: the old one or the new one is there, whole;
// the new one, once WriteFile has returned.
func TestPowerFailsWhileWriting(t *testing.T) {
	const path = "dir/x.wpp"
	for _, noLinks := range []bool{false, true} {
		for dies := 1; ; dies++ {
			f := newVolatileFiles(path, encoded(t, numbered(1)))
			f.dies, f.noLinks = dies, noLinks
			err := newDraft(f, path).Finish(t.Context(), large(2))
			f.afterwards(func(how string, files map[string][]byte) {
				got, old := pidIn(files[path]), pidIn(files[Old(path)])
				switch {
				case !f.dead() && got != 2:
					t.Errorf("%s: it had been written, but there is %d", how, got)
				case got != 1 && got != 2 && !(noLinks && files[path] == nil && old == 1):
					// without links there is a moment
					t.Errorf("%s (no links: %v): there is %d, and the old one is %d", how, noLinks,
						got, old)
				}
			})
			if !f.dead() {
				if err != nil || dies < 8 {
					t.Fatalf("after %d steps: %v", f.step, err)
				}
				break
			}
		}
	}
}

// The power fails at any step of a recording that spills: what had been spilled is read, and
// nothing that was not recorded.
func TestPowerFailsWhileSpilling(t *testing.T) {
	const path, temporary = "dir/x.wpp", "dir/.x.wpp.1"
	want := wpptest.Repetitive()
	for dies := 1; ; dies++ {
		f := newVolatileFiles(path, encoded(t, numbered(1)))
		f.dies = dies
		d := newDraft(f, path)
		var spilled uint64
		tables := *want
		for i := range want.Threads {
			if _, err := d.Spill(&tables, i, want.Threads[i]); err != nil {
				break
			}
			spilled += want.Threads[i].Grammar.Length(0)
			tables.Symbols = nil
		}
		f.afterwards(func(how string, files map[string][]byte) {
			got, err := format.Read(bytes.NewReader(files[temporary]))
			if err == nil {
				t.Errorf("%s: an unfinished file is read without an error", how)
			}
			read := uint64(0)
			if got != nil {
				read = wpptest.Beginnings(t, how, want, got)
			}
			if read < spilled {
				t.Errorf("%s: %d symbols had been spilled, read are %d: %v", how, spilled, read,
					err)
			}
			if pidIn(files[path]) != 1 {
				t.Errorf("%s: the old snapshot is not there", how)
			}
		})
		if !f.dead() {
			if dies < 6 {
				t.Fatalf("it took %d steps", f.step)
			}
			return
		}
	}
}
