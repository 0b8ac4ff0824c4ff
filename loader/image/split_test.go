package image

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// Debug information in .zdebug_ sections says what it says in others, whether the linker or objcopy
// has compressed it, of each version, and in a companion.
func TestZlibGNU(t *testing.T) {
	installAt(t)
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		program := compile(t, "chains.cc", chains, "-O2", version)
		whole := mustOpen(t, program)
		build := func(name string, flags ...string) (other string) {
			other = filepath.Join(filepath.Dir(program), name)
			source := filepath.Join(filepath.Dir(program), "chains.cc")
			run(t, "", "g++", append(flags, "-o", other, source, "-O2", version)...)
			return other
		}
		want := everyLine(t, whole)
		check := func(how, program string) {
			t.Helper()
			im := mustOpen(t, program)
			if got := everyLine(t, im); !slices.EqualFunc(got, want, slices.Equal) ||
				len(want) == 0 {
				t.Errorf("%s %s: lines or inlined calls differ", version, how)
			}
			if lines, err := im.Lines(); err != nil || lines.Trouble() != nil {
				t.Errorf("%s %s: %v, %v", version, how, err, lines.Trouble())
			}
		}
		linked := build("linked", "-gz=zlib-gnu")
		if s := mustOpen(t, linked).file.parsed.Section(".zdebug_info"); s == nil {
			t.Fatal("nothing is compressed")
		}
		check("linked", linked)
		copied := build("copied")
		run(t, "", "objcopy", "--compress-debug-sections=zlib-gnu", copied)
		check("copied", copied)
		companion := build("companion", "-gz=zlib-gnu")
		install(t, companion, mustOpen(t, companion).BuildID)
		check("installed", companion)
	}
}

// A .zdebug_ section that is not what it claims gives an error that names it, and costs no more
// than it has bytes.
func TestZlibGNUIsChecked(t *testing.T) {
	program := compile(t, "chains.cc", chains, "-O2", "-gz=zlib-gnu", "-gdwarf-5")
	file, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, program).file.parsed.Section(".zdebug_info")
	at, size := int(s.Offset), int(s.FileSize)
	bytes8 := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	claimed := binary.BigEndian.Uint64(file[at+4:])
	for name, c := range map[string]struct {
		at   int
		with []byte
		want string
	}{
		"no header": {at, []byte("zlib"), "section .zdebug_info: it has no header of " +
			"compressed debug information"},
		"much": {at + 4, bytes8(1 << 40), "section .zdebug_info: claims 1099511627776 " +
			"bytes"},
		"most": {at + 4, bytes8(1<<64 - 1),
			"section .zdebug_info: claims 18446744073709551615 bytes"},
		"more": {at + 4, bytes8(claimed + 1),
			fmt.Sprintf("section .zdebug_info: is not the %d bytes that it claims: ", claimed+1)},
		"not compressed": {at + gnuHeader, []byte{0, 0, 0, 0},
			"section .zdebug_info: zlib: invalid header"},
		"damaged": {at + size/2, bytes.Repeat([]byte{0xff}, 100),
			"section .zdebug_info: is not the "},
	} {
		damaged := slices.Clone(file)
		copy(damaged[c.at:], c.with)
		path := filepath.Join(t.TempDir(), "damaged")
		if err := os.WriteFile(path, damaged, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := mustOpen(t, path).Lines(); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// A program whose debug information is in files of its own has source lines, and says that inlined
// calls are missing, where they are and what to do, also when dwp has put them into one file.
func TestSplitDWARF(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang-19"} {
		if _, err := exec.LookPath(compiler); err != nil {
			testenv.Missing(t, err)
		}
		for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
			for _, files := range []int{1, 2} {
				checkSplit(t, compiler, version, files)
			}
		}
	}
}

func checkSplit(t *testing.T, compiler, version string, files int) {
	t.Helper()
	dir := t.TempDir()
	build := func(program string, flags ...string) *Image {
		args := append(flags, "-O1", version, "-o", filepath.Join(dir, program))
		for i := range files {
			source := filepath.Join(dir, fmt.Sprintf("part%d.c", i))
			text := strings.ReplaceAll(splitPart, "PART", fmt.Sprint(i))
			if i == 0 {
				text += "int main(int argc, char **argv) { return work0(argc); }\n"
			}
			if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, source)
		}
		run(t, "", compiler, args...)
		return mustOpen(t, filepath.Join(dir, program))
	}
	whole, split := build("whole"), build("split", "-gsplit-dwarf")
	if _, err := exec.LookPath("llvm-dwp-19"); err == nil {
		run(t, "", "llvm-dwp-19", "-e", filepath.Join(dir, "split"), "-o",
			filepath.Join(dir, "split.dwp"))
	}
	lines, err := split.Lines()
	if err != nil {
		t.Fatalf("%s %s: %v", compiler, version, err)
	}
	want, err := whole.Lines()
	if err != nil {
		t.Fatal(err)
	}
	from, to := symbolNamed(t, whole, "work0"), symbolNamed(t, split, "work0")
	inlined := 0
	for i := range from.Size {
		inlined += len(want.Inlined(from.Addr + i))
		file, line, _ := lines.At(to.Addr + i)
		if wantFile, wantLine, _ := want.At(from.Addr + i); file != wantFile || line != wantLine {
			t.Fatalf("%s %s: byte %d is of %s:%d, want %s:%d", compiler, version, i, file, line,
				wantFile, wantLine)
		}
	}
	if inlined == 0 {
		t.Fatalf("%s %s: nothing is inlined", compiler, version)
	}
	named := "they are in "
	if files > 1 {
		named += fmt.Sprintf("%d .dwo files, the first ", files)
	}
	const remedy = `, or in a .dwp file of the program, which are not read: build without -gsplit-dwarf`
	err = lines.Trouble()
	if err == nil || !strings.Contains(err.Error(), named+`"`+dir) ||
		!strings.HasSuffix(err.Error(), `part0.dwo"`+remedy) {
		t.Errorf("%s %s, %d files: %v", compiler, version, files, err)
	}
	if want.Trouble() != nil {
		t.Errorf("%s %s: %v", compiler, version, want.Trouble())
	}
}

const splitPart = `static inline __attribute__((always_inline)) int tiny(int x) { volatile int y = x; return y * y + PART; }
__attribute__((noinline)) int workPART(int n)
{
	int s = 0;
	for (int i = 0; i < n; i++)
		s += i & 1 ? tiny(s) : tiny(i) * 3;
	return s;
}
`

// However a .zdebug_ section is, there are lines or an error.
func FuzzZlibGNU(f *testing.F) {
	abbrev, info, line := smallDWARF()
	packed := func(data []byte) []byte {
		var b bytes.Buffer
		b.WriteString("ZLIB")
		b.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		w := zlib.NewWriter(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	}
	f.Add(packed(line))
	f.Add(packed(nil))
	f.Add([]byte("ZLIB\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, packed []byte) {
		var b elfBuilder
		b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0,
			make([]byte, 64))
		at := uint64(smallCode + 64)
		for _, s := range []struct {
			name string
			data []byte
		}{{".debug_abbrev", abbrev}, {".debug_info", info}, {".zdebug_line", packed}} {
			b.add(s.name, elf.SHT_PROGBITS, 0, at, 0, s.data)
			at += uint64(len(s.data))
		}
		file := b.finish()
		im, err := Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		if lines, err := im.Lines(); (lines == nil) == (err == nil) {
			t.Fatalf("%v, %v", lines, err)
		}
	})
}
