package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/format"
	"wpptrace/compress/wpp/wpptest"
)

// numbered returns a snapshot that differs from others by its process number.
func numbered(pid int) *wpp.Snapshot {
	s := wpptest.Small()
	s.Figures.PID = pid
	return s
}

func encoded(t *testing.T, s *wpp.Snapshot) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := format.Write(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pidOf(t *testing.T, path string) int {
	t.Helper()
	s, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s.Figures.PID
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestWriteFileKeepsTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wpp")
	for pid := 1; pid <= 3; pid++ {
		if err := WriteFile(path, numbered(pid)); err != nil {
			t.Fatal(err)
		}
		if got := pidOf(t, path); got != pid {
			t.Fatalf("snapshot %d holds %d", pid, got)
		}
		if pid == 1 {
			continue
		}
		if got := pidOf(t, path+".old"); got != pid-1 {
			t.Fatalf("beside snapshot %d the old one is %d", pid, got)
		}
	}
	if names := namesIn(t, dir); !slices.Equal(names, []string{"x.wpp", "x.wpp.old"}) {
		t.Errorf("left in the directory: %v", names)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// A write that stopped between its renames leaves path.old as a second name of path.
func TestWriteFileAfterAnInterruptedOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.wpp")
	if err := WriteFile(path, numbered(1)); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, numbered(2)); err != nil {
		t.Fatal(err)
	}
	if pidOf(t, path) != 2 || pidOf(t, path+".old") != 1 {
		t.Error("wrong snapshots")
	}
	if names := namesIn(t, dir); len(names) != 2 {
		t.Errorf("left in the directory: %v", names)
	}
}

func TestWriteFileReplacesALinkNotItsTarget(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "precious")
	path := filepath.Join(dir, "x.wpp")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, numbered(1)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("the link's target is now %q, %v", b, err)
	}
	if pidOf(t, path) != 1 {
		t.Error("wrong snapshot")
	}
}

func TestWriteFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir:                                      "is not a regular file",
		os.DevNull:                               "is not a regular file",
		filepath.Join(dir, "missing", "x.wpp"):   "no such file or directory",
		filepath.Join(dir, "x.wpp", "") + "\x00": "invalid argument",
	} {
		err := WriteFile(path, wpptest.Small())
		if err == nil || !strings.HasPrefix(err.Error(), "write snapshot "+path+": ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	if names := namesIn(t, dir); len(names) != 0 {
		t.Errorf("left in the directory: %v", names)
	}
}

// A failingFiles is the machine's file system, but its n-th step fails, and all steps after it
// where it has died.
type failingFiles struct {
	osFiles
	step, fail int
	dies       bool
	noLinks    bool
	failed     string // the step that failed
}

var errStep = errors.New("injected fault")

func (f *failingFiles) next(name string) error {
	f.step++
	if f.step == f.fail || f.dies && f.step > f.fail {
		if f.failed == "" {
			f.failed = name
		}
		return errStep
	}
	return nil
}

func (f *failingFiles) Lstat(name string) (fs.FileInfo, error) {
	if err := f.next("lstat"); err != nil {
		return nil, err
	}
	return f.osFiles.Lstat(name)
}

func (f *failingFiles) CreateTemp(dir, pattern string) (file, error) {
	if err := f.next("create"); err != nil {
		return nil, err
	}
	inner, err := f.osFiles.CreateTemp(dir, pattern)
	return &failingFile{inner, f}, err
}

func (f *failingFiles) Link(from, to string) error {
	if f.noLinks {
		return errors.ErrUnsupported
	}
	if err := f.next("link"); err != nil {
		return err
	}
	return f.osFiles.Link(from, to)
}

func (f *failingFiles) Rename(from, to string) error {
	if err := f.next("rename"); err != nil {
		return err
	}
	return f.osFiles.Rename(from, to)
}

func (f *failingFiles) Remove(name string) error {
	if err := f.next("remove"); err != nil {
		return err
	}
	return f.osFiles.Remove(name)
}

func (f *failingFiles) SyncDir(dir string) error {
	if err := f.next("sync directory"); err != nil {
		return err
	}
	return f.osFiles.SyncDir(dir)
}

type failingFile struct {
	file
	f *failingFiles
}

func (w *failingFile) Write(b []byte) (int, error) {
	if err := w.f.next("write"); err != nil {
		n, _ := w.file.Write(b[:len(b)/2]) // a full disk takes a part
		return n, err
	}
	return w.file.Write(b)
}

func (w *failingFile) Sync() error {
	if err := w.f.next("sync"); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *failingFile) Close() error {
	return errors.Join(w.file.Close(), w.f.next("close"))
}

// large is a snapshot that takes several writes.
func large(pid int) *wpp.Snapshot {
	s := numbered(pid)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s.Files = append(s.Files, strconv.FormatUint(random.Uint64(), 36))
	}
	return s
}

// Every step of WriteFile fails once: a whole snapshot, old or new, is where it was, and nothing
// else is left.
func TestWriteFileWhenAStepFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, and runs no goroutines")
	}
	for _, noLinks := range []bool{false, true} {
		writes := 0
		for fail := 1; ; fail++ {
			dir := t.TempDir()
			path := filepath.Join(dir, "x.wpp")
			for pid := 1; pid <= 2; pid++ {
				if err := WriteFile(path, numbered(pid)); err != nil {
					t.Fatal(err)
				}
			}
			f := &failingFiles{fail: fail, noLinks: noLinks}
			err := newDraft(f, path).Finish(t.Context(), large(3))
			if f.failed == "" {
				if err != nil || writes < 3 {
					t.Fatalf("%d writes: %v", writes, err)
				}
				break
			}
			if f.failed == "write" {
				writes++
			}
			step := fmt.Sprintf("step %d, %s (no links: %v)", fail, f.failed, noLinks)
			checkAfterFailure(t, step, f.failed, path, err)
			if !noLinks { // without links the old snapshot becomes path.old, and path again
				if old := pidOf(t, path+".old"); old != 1 && old != 2 {
					t.Errorf("%s: the old snapshot is %d", step, old)
				}
			}
		}
	}
}

func checkAfterFailure(t *testing.T, step, failed, path string, err error) {
	t.Helper()
	want := 2
	switch failed {
	case "link": // not needed: the other way is taken
		if err != nil {
			t.Errorf("%s: %v", step, err)
		}
		want = 3
	case "sync directory":
		want = 3
		fallthrough
	default:
		if !errors.Is(err, errStep) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", step, err)
		}
	}
	if got := pidOf(t, path); got != want {
		t.Errorf("%s: the snapshot is %d, want %d", step, got, want)
	}
	if names := namesIn(t, filepath.Dir(path)); failed != "remove" && len(names) > 2 {
		t.Errorf("%s: left in the directory: %v", step, names)
	}
}

// A writer that dies at any step leaves a whole snapshot at path, where there are hard links.
func TestWriteFileWhenTheWriterDies(t *testing.T) {
	for die := 1; ; die++ {
		path := filepath.Join(t.TempDir(), "x.wpp")
		if err := WriteFile(path, numbered(1)); err != nil {
			t.Fatal(err)
		}
		f := &failingFiles{fail: die, dies: true}
		err := newDraft(f, path).Finish(t.Context(), numbered(2))
		if f.failed == "" {
			break
		}
		if got := pidOf(t, path); got != 1 && got != 2 {
			t.Errorf("dead at step %d, %s: the snapshot is %d", die, f.failed, got)
		}
		if err == nil {
			t.Errorf("dead at step %d, %s: no error", die, f.failed)
		}
	}
}

func TestReadFileNamesTheFileAndTheRemedy(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole := encoded(t, wpptest.Small())
	newer := binary.LittleEndian.AppendUint32(slices.Clone(whole[:8]), 9)
	newer = binary.LittleEndian.AppendUint32(newer,
		crc32.Checksum(newer, crc32.MakeTable(crc32.Castagnoli)))
	const again = ": copy it again from where it was recorded, or record anew"
	const salvaged = ": read was what is whole, 11 paths and marks of 1 thread: what ran after " +
		"them is missing; copy it again from where it was recorded, if it is whole there"
	for path, want := range map[string][2]string{
		write("short.wpp",
			whole[:len(whole)-30]): {"snapshot %s is truncated in section thread 1: ", salvaged},
		write("bad.wpp", slices.Concat(whole[:16],
			whole[len(whole)-20:])): {"snapshot %s is damaged: section end stands where figures " +
			"should", again},
		write("new.wpp",
			newer): {"snapshot %s has version 9; this wpptrace reads versions 1 to 6",
			": use a newer wpptrace"},
		write("text.wpp",
			[]byte("text")): {"snapshot %s is no wpptrace snapshot",
			": name a file that wpptrace has recorded"},
		filepath.Join(dir,
			"none.wpp"): {"read snapshot: open %s: ", ": name a file that wpptrace has recorded"},
		dir: {"read snapshot: read %s: ", ": name a file that wpptrace has recorded"},
	} {
		_, err := ReadFile(path)
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf(want[0], path)) ||
			!strings.HasSuffix(err.Error(), want[1]) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestWriteFileEqualsWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.wpp")
	if err := WriteFile(path, wpptest.Small()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, encoded(t, wpptest.Small())) {
		t.Error("the file is not what Write writes")
	}
}

func ExampleWriteFile() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "demo-4711.wpp")
	if err := WriteFile(path, wpptest.Small()); err != nil {
		fmt.Println(err)
		return
	}
	s, err := ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	for sym := range s.Threads[0].Grammar.Expand(0) {
		if r := s.RoutineOf(sym); r != nil {
			fmt.Println(r.Name, s.SymbolCost(sym))
		}
		if sym == 3 {
			break
		}
	}
	// Output:
	// demo::main() 4
	// demo::main() 4
	// demo::main() 4
	// demo::main() 4
	// demo::main() 4
	// demo::main() 4
	// demo::main() 0
}
