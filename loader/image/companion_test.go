package image

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wpptrace/internal/testenv"
)

// install puts the debug information of a program where a distribution does, as if for a build id,
// and strips the program of it.
func install(t *testing.T, program, id string) (companion string) {
	t.Helper()
	companion = filepath.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug")
	if err := os.MkdirAll(filepath.Dir(companion), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "", "objcopy", "--only-keep-debug", program, companion)
	run(t, "", "strip", program)
	return companion
}

// installAt has debug information looked for in a directory of the test's. Tests that do so do not
// run in parallel.
func installAt(t *testing.T) {
	before := debugRoot
	t.Cleanup(func() { debugRoot = before })
	debugRoot = t.TempDir()
}

// A stripped program with its debug information under /usr/lib/debug has the names, lines and
// inlined calls that it had.
func TestCompanion(t *testing.T) {
	installAt(t)
	program := compile(t, "chains.cc", chains, "-O2", "-g")
	whole := mustOpen(t, program)
	want := everyLine(t, whole)
	companion := install(t, program, whole.BuildID)
	stripped := mustOpen(t, program)
	if diff := cmp.Diff(whole.Symbols(), stripped.Symbols()); diff != "" {
		t.Errorf("symbols: %s", diff)
	}
	if got := everyLine(t, stripped); !slices.EqualFunc(got, want, slices.Equal) ||
		stripped.PassedOver() != nil {
		t.Errorf("lines or inlined calls differ: %v", stripped.PassedOver())
	}

	file, err := os.ReadFile(companion)
	if err != nil {
		t.Fatal(err)
	}
	// its names are those of no section
	noSymbols := patched(file,
		int(binary.LittleEndian.Uint64(file[40:]))+sectionNamed(t, companion, ".symtab")*64+40,
		0xff, 0xff)
	run(t, "", "objcopy", "--compress-debug-sections=zlib", companion)
	if got := everyLine(t, mustOpen(t, program)); !slices.EqualFunc(got, want, slices.Equal) {
		t.Error("lines or inlined calls differ where sections are compressed")
	}
	other := compile(t, "exceptions.cc", exceptions, "-O1", "-g")
	const notRoots, escapes = 1234, "path escapes from parent"
	for name, c := range map[string]struct {
		damage func() error
		want   string
	}{
		"another program's": {func() error { install(t, other, whole.BuildID); return nil },
			"it is not of build id " + whole.BuildID},
		"cut off": {func() error {
			return os.WriteFile(companion, file[:len(file)/2], 0o600)
		}, "malformed elf file: EOF"},
		"empty": {func() error { return os.WriteFile(companion, nil, 0o600) },
			"malformed elf file: EOF"},
		"without good symbols": {func() error { return os.WriteFile(companion, noSymbols, 0o600) },
			"symbol table .symtab has no names"},
		"a directory": {func() error { return os.Mkdir(companion, 0o755) },
			"it is no regular file"},
		"a pipe": {func() error { return syscall.Mkfifo(companion, 0o600) },
			"it is no regular file"},
		// as /dev/zero
		"a device": {func() error {
			return syscall.Mknod(companion, syscall.S_IFCHR|0o600, 1<<8|5)
		}, "it is no regular file"},
		"a link to a file": {func() error { return os.Symlink("/etc/shadow", companion) },
			escapes},
		"a link upwards": {func() error {
			return os.Symlink("../../../../../../../etc/shadow", companion)
		}, escapes},
		"a link to itself": {func() error {
			return os.Symlink(filepath.Base(companion), companion)
		}, "too many levels of symbolic links"},
		"another user's": {func() error {
			return errors.Join(os.WriteFile(companion, file, 0o644),
				os.Chown(companion, notRoots, 0))
		}, "it is not root's"},
		"another user's link": {func() error {
			return errors.Join(os.WriteFile(companion+"2", file, 0o644),
				os.Symlink(filepath.Base(companion)+"2", companion), os.Lchown(companion, notRoots,
					0))
		}, "it is not root's"},
		"in a shared directory": {func() error {
			return errors.Join(os.WriteFile(companion, file, 0o644),
				os.Chmod(filepath.Dir(companion), 0o777))
		}, "its directory is not root's alone"},
		"in a directory of a group": {func() error {
			return errors.Join(os.WriteFile(companion, file, 0o644),
				os.Chmod(filepath.Dir(companion), 0o775))
		}, "its directory is not root's alone"},
		"10 GB of nothing": {func() error {
			return errors.Join(os.WriteFile(companion, nil, 0o600), os.Truncate(companion, 10<<30))
		}, "malformed elf file: bad magic number"},
		"not there": {func() error { return nil }, ""},
	} {
		if err := errors.Join(os.RemoveAll(companion), c.damage()); errors.Is(err, syscall.EPERM) &&
			os.Geteuid() != 0 {
			t.Logf("%s: %v", name, err) // makes no devices, and no files of others
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		im := mustOpen(t, program)
		if slices.ContainsFunc(im.Symbols(), func(s Symbol) bool { return !s.Dynamic }) {
			t.Errorf("%s: it is read for symbols", name)
		}
		if err := im.PassedOver(); (err == nil) != (c.want == "") ||
			err != nil && !strings.HasPrefix(err.Error(), companion+": "+c.want) {
			t.Errorf("%s: passed over: %v, want %s", name, err, c.want)
		}
		if _, err := im.Lines(); (err == nil) != (name == "without good symbols") ||
			err != nil && errors.Is(err, ErrNoLines) != (name == "not there") ||
			errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: lines: %v", name, err)
		}
		os.Chmod(filepath.Dir(companion), 0o755)
	}
}

// everyLine is the place of each byte of code, with all that is inlined there.
func everyLine(t *testing.T, im *Image) (all [][]string) {
	t.Helper()
	lines, err := im.Lines()
	if err != nil {
		t.Fatal(err)
	}
	lines.Release()
	for _, addr := range code(im) {
		all = append(all, inlinedHere(lines, addr))
	}
	if err := lines.Trouble(); err != nil {
		t.Error(err)
	}
	return all
}

func sectionNamed(t *testing.T, path, name string) int {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return slices.IndexFunc(f.Sections, func(s *elf.Section) bool { return s.Name == name })
}

// Links within the directory are followed, as some distributions have them for each build id.
func TestCompanionBehindALink(t *testing.T) {
	installAt(t)
	program := compile(t, "exceptions.cc", exceptions, "-O2", "-g")
	companion := install(t, program, mustOpen(t, program).BuildID)
	moved := filepath.Join(debugRoot, "usr/bin/program.debug")
	if err := errors.Join(os.MkdirAll(filepath.Dir(moved), 0o755), os.Rename(companion, moved),
		os.Symlink("../../usr/bin/program.debug", companion)); err != nil {
		t.Fatal(err)
	}
	im := mustOpen(t, program)
	if _, err := im.Lines(); err != nil || im.PassedOver() != nil {
		t.Errorf("%v, %v", err, im.PassedOver())
	}
}

// Debug information that two files share, as dwz makes it, is found by its name among what is
// installed, and by its build id.
func TestSupplement(t *testing.T) {
	if _, err := exec.LookPath("dwz"); err != nil {
		testenv.Missing(t, err)
	}
	for _, format := range []string{"-gdwarf-4", "-gdwarf-5"} {
		installAt(t)
		// to the compiler's directory, whose name is shared too
		relative := "-fdebug-prefix-map=" + os.TempDir() + "=tmp"
		programs := []string{compile(t, "chains.cc", chains, "-O2", format, relative),
			compile(t, "chains.cc", chains, "-O3", format, relative)}
		var wants [][][]string
		var companions []string
		for _, program := range programs {
			im := mustOpen(t, program)
			wants = append(wants, everyLine(t, im))
			companions = append(companions, install(t, program, im.BuildID))
		}
		shared := filepath.Join(debugRoot, ".dwz/shared.debug")
		if err := os.Mkdir(filepath.Dir(shared), 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, "", "dwz", append([]string{"-m", shared, "-M", "/usr/lib/debug/.dwz/shared.debug"},
			companions...)...)
		check := func(where string) {
			for i, program := range programs {
				if got := everyLine(t, mustOpen(t, program)); !slices.EqualFunc(got, wants[i],
					slices.Equal) {
					t.Errorf("%s, %s: lines or inlined calls of program %d differ", format, where,
						i)
				}
			}
		}
		check("by its name")
		id := mustNote(t, shared)
		byID := filepath.Join(debugRoot, ".build-id", id[:2], id[2:]+".debug")
		if err := errors.Join(os.MkdirAll(filepath.Dir(byID), 0o755),
			os.Rename(shared, byID)); err != nil {
			t.Fatal(err)
		}
		check("by its build id")
		checkWithoutSupplement(t, programs[0], byID, id)
	}
}

// checkWithoutSupplement: what is not there, or another's, is not read; that is noted once, and
// calls have no names.
func checkWithoutSupplement(t *testing.T, program, supplement, id string) {
	t.Helper()
	other := compile(t, "exceptions.cc", exceptions, "-g")
	for want, change := range map[string]func() error{
		supplement + ": it is not of build id " +
			id: func() error {
			run(t, "", "objcopy", "--only-keep-debug", other, supplement)
			return nil
		},
		"no such file or directory": func() error { return os.Remove(supplement) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		im := mustOpen(t, program)
		lines, err := im.Lines()
		if err != nil {
			t.Fatal(err)
		}
		if err := lines.Trouble(); err == nil || !strings.Contains(err.Error(),
			"names are in \"/usr/lib/debug/.dwz/shared.debug\" of build id "+id) ||
			!strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		deepest := 0
		for _, addr := range code(im) {
			deepest = max(deepest, len(lines.Inlined(addr)))
		}
		if deepest < 3 {
			t.Errorf("calls are %d deep", deepest)
		}
	}
}

// mustNote returns a file's build id.
func mustNote(t *testing.T, path string) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	return buildID(note)
}

func ExampleImage_PassedOver() {
	im, err := OpenFile("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	fmt.Println(im.PassedOver())
	// Output: <nil>
}
