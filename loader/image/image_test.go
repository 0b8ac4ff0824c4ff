package image

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOpen(t *testing.T) {
	for _, test := range []struct {
		flags string
		pie   bool
	}{
		{"-O2 -fPIE -pie", true},
		{"-O2 -fno-pie -no-pie", false},
		{"-O0 -static", false},
		{"-O2 -static-pie -fPIE", true},
		{"-O2 -fPIE -pie -s", true},
	} {
		t.Run(test.flags, func(t *testing.T) {
			t.Parallel()
			path := compile(t, "loops.c", loops,
				append(strings.Fields(test.flags), "-Wl,--build-id=0xc0ffee")...)
			im := mustOpen(t, path)
			if im.PIE != test.pie || im.Name != "program" || im.BuildID != "c0ffee" {
				t.Errorf("%s, pie %v, build id %q", im.Name, im.PIE, im.BuildID)
			}
			checkBytes(t, im, path)
			if !strings.Contains(test.flags, "-s") {
				checkCover(t, im)
			}
		})
	}
}

// checkBytes compares the bytes of the code with those of the file.
func checkBytes(t *testing.T, im *Image, path string) {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range im.Ranges {
		offset, ok := im.FileOffset(r.Lo)
		code := im.Bytes(r.Lo, r.Hi)
		if !ok || code == nil || !bytes.Equal(code, file[offset:offset+uint64(len(code))]) {
			t.Fatalf("code at %#x: file offset %#x, ok %v, %d bytes", r.Lo, offset, ok, len(code))
		}
		if back, ok := im.Address(offset); !ok || back != r.Lo {
			t.Fatalf("file offset %#x of code at %#x is of %#x, %v", offset, r.Lo, back, ok)
		}
	}
	text := im.Section(".text")
	end := text.Addr + uint64(len(text.Data))
	if !text.Exec || text.Writable || im.SectionAt(text.Addr) != text ||
		im.SectionAt(end-1) != text || im.SectionAt(end) == text {
		t.Errorf("section .text at %#x is not found by its addresses", text.Addr)
	}
	if rangeAt(im, im.Entry) == nil {
		t.Errorf("no range holds the entry %#x", im.Entry)
	}
	for _, bad := range [][2]uint64{{text.Addr, end + 1}, {text.Addr + 1, text.Addr}, {0, 1},
		{end - 1, 0}, {1 << 63, 1<<63 + 8}} {
		if b := im.Bytes(bad[0], bad[1]); b != nil {
			t.Errorf("%d bytes from %#x to %#x", len(b), bad[0], bad[1])
		}
	}
	if _, ok := im.FileOffset(im.Section(".data").Addr); ok {
		t.Error("data has a file offset as code")
	}
}

// checkCover checks that the ranges cover the functions that the compiler named.
func checkCover(t *testing.T, im *Image) {
	t.Helper()
	for _, name := range []string{"main", "sum", "twice", "thrice", "nothing", "chosen", "choose",
		"pick"} {
		s := symbolNamed(t, im, name)
		if r := rangeAt(im, s.Addr); r == nil || r.Lo != s.Addr ||
			name != "pick" && r.Hi != s.Addr+s.Size {
			t.Errorf("%s at %#x, %d bytes, lies in %+v", name, s.Addr, s.Size, r)
		}
	}
}

// TestStripped checks that symbols are all that a stripped program lacks.
func TestStripped(t *testing.T) {
	path := compile(t, "exceptions.cc", exceptions, "-O2")
	stripped := path + ".stripped"
	run(t, "", "strip", "-o", stripped, path)
	with, without := mustOpen(t, path), mustOpen(t, stripped)
	if diff := cmp.Diff(with.Ranges, without.Ranges,
		cmpopts.IgnoreUnexported(Range{})); diff != "" {
		t.Errorf("ranges -with +without symbols\n%s", diff)
	}
	if diff := cmp.Diff(with.Imports(), without.Imports()); diff != "" {
		t.Errorf("imports -with +without symbols\n%s", diff)
	}
	if len(with.Symbols()) < 10 || len(without.Symbols()) >= len(with.Symbols()) {
		t.Errorf("%d symbols, %d stripped", len(with.Symbols()), len(without.Symbols()))
	}
}

// TestImports compares the stubs with those that objdump names.
func TestImports(t *testing.T) {
	paths := []string{"/bin/bash", "/lib/x86_64-linux-gnu/libc.so.6"}
	for _, flags := range []string{"-O2", "-no-pie", "-fcf-protection=full -Wl,-z,ibtplt",
		"-fcf-protection=none", "-Wl,-z,now", "-Wl,-z,now -Wl,-z,ibtplt"} {
		paths = append(paths, compile(t, "exceptions.cc", exceptions, strings.Fields(flags)...))
	}
	label := regexp.MustCompile(`(?m)^([0-9a-f]+) <([^>@]+)@plt>:`)
	for _, path := range paths {
		im := mustOpen(t, path)
		args := []string{"-d", "--no-show-raw-insn", path}
		for _, s := range im.Sections {
			if isStubs(s.Name) {
				args = append(args, "-j", s.Name)
			}
		}
		listing := run(t, "", "objdump", args...)
		labels := label.FindAllStringSubmatch(listing, -1)
		for _, l := range labels {
			addr, _ := strconv.ParseUint(l[1], 16, 64)
			if strings.HasPrefix(l[2], "*ABS*") {
				continue
			}
			if got := im.Imports()[addr]; got != l[2] {
				t.Errorf("%s: stub at %#x is %q, objdump has %q", path, addr, got, l[2])
			}
		}
		if len(labels) < 5 {
			t.Errorf("%s: objdump found %d stubs", path, len(labels))
		}
	}
}

// TestImportsWithoutStubs checks the slots that code calls through.
func TestImportsWithoutStubs(t *testing.T) {
	im := mustOpen(t, compile(t, "loops.c", loops, "-O2", "-fno-plt"))
	got := im.Section(".got")
	var names []string
	for addr, name := range im.Imports() {
		if addr >= got.Addr && addr < got.Addr+uint64(len(got.Data)) {
			names = append(names, name)
		}
	}
	for _, want := range []string{"printf", "free", "strlen", "strdup"} {
		if !slices.Contains(names, want) && !slices.Contains(names, "__"+want) &&
			!(want == "printf" && slices.Contains(names, "__printf_chk")) {
			t.Errorf("no slot for %s in %v", want, names)
		}
	}
}

// TestRelocations finds the functions of a table, in both forms of relative relocations.
func TestRelocations(t *testing.T) {
	for _, flags := range []string{"-O2 -fPIE -pie", "-O2 -fPIE -pie -Wl,-z,pack-relative-relocs",
		"-O2 -shared -fPIC"} {
		im := mustOpen(t, compile(t, "loops.c", loops, strings.Fields(flags)...))
		if packed := im.Section(".relr.dyn") != nil; packed != strings.Contains(flags, "pack") {
			t.Fatalf("%s: packed relocations: %v", flags, packed)
		}
		twice := symbolNamed(t, im, "twice").Addr
		found := false
		at := func(addr uint64) uint64 {
			to, _ := im.Relocations().At(addr)
			return to
		}
		for _, r := range im.Relocations() {
			if r.To == twice && at(r.Addr+8) == symbolNamed(t, im, "thrice").Addr &&
				at(r.Addr+16) == symbolNamed(t, im, "nothing").Addr {
				found = true
			}
		}
		if !found {
			t.Errorf("%s: no table of functions among %d relocations", flags, len(im.Relocations()))
		}
		if choose := symbolNamed(t, im, "choose").Addr; strings.Contains(flags, "PIE") &&
			!slices.Contains(im.Resolvers(), choose) {
			t.Errorf("%s: resolver %#x is not in %#x", flags, choose, im.Resolvers())
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	object := filepath.Join(t.TempDir(), "object.o")
	run(t, "int x;", "gcc", "-c", "-x", "c", "-o", object, "-")
	relocatable, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	small := smallELF()
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "empty is not an ELF program: name the file of one"},
		{"notes.txt", []byte("no program at all"), "notes.txt is not an ELF program: name the " +
			"file of one"},
		{"configure", []byte("#!/bin/sh\nexit 0\n"),
			"configure is a script, not an ELF program: trace its interpreter"},
		{"wine", patched(small, 4, 1), "wine is a 32-bit program: wpptrace traces x86-64 only"},
		{"phone", patched(small, 18, 183), "phone is a program for aarch64: wpptrace traces " +
			"x86-64 only"},
		{"object.o", relocatable, "object.o is neither an executable nor a shared object"},
		{"packed", patched(patched(small, 40, make([]byte, 8)...), 60, 0, 0, 0, 0),
			"packed has no section headers: nothing distinguishes its code from its data"},
		{"half", small[:len(small)/2], "read half: malformed elf file: "},
		{"magic", small[:8], "read magic: malformed elf file: "},
		{"frames", patched(small, smallFrames, 0xf0),
			"read frames: .eh_frame: record at 0x0 runs past the end of the section"},
	} {
		im, err := Open(bytes.NewReader(test.data), int64(len(test.data)), test.name)
		if err == nil || im != nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.name, err, test.want)
		}
	}
	if _, err := OpenFile(t.TempDir()); err == nil || !strings.Contains(err.Error(),
		"is no regular file") {
		t.Errorf("opened a directory: %v", err)
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("opened a file that is not there")
	}
}

// patched returns a copy of data with the bytes from an offset on replaced.
func patched(data []byte, at int, with ...byte) []byte {
	data = slices.Clone(data)
	copy(data[at:], with)
	return data
}

func TestDemangle(t *testing.T) {
	for symbol, want := range map[string]string{
		"main":                                   "main",
		"main.cold":                              "main.cold",
		"":                                       "",
		"_Z":                                     "_Z",
		"_Z3fooi":                                "foo",
		"_Z3fooi.cold":                           "foo.cold",
		"_ZN3foo3barEv.constprop.0.cold":         "foo::bar.constprop.0.cold",
		"_ZNKSt6vectorIiSaIiEE4sizeEv":           "std::vector<int, std::allocator<int> >::size",
		"_ZThn16_N3foo3barEv":                    "non-virtual thunk to foo::bar()",
		"_RNvCs1234_7mycrate3foo":                "mycrate::foo",
		"_RNvCs1234_7mycrate3foo.llvm.77":        "mycrate::foo.llvm.77",
		"_ZN4core3fmt5write17h0123456789abcdefE": "core::fmt::write",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.123":                          "core::fmt::Formatter::pad.llvm.123",
		"_ZN50_$LT$T$u20$as$u20$core..convert..Into$LT$U$GT$$GT$4into17h0123456789abcdefE": "<T as core::convert::Into<U>>::into",
	} {
		if got := Demangle(symbol); got != want {
			t.Errorf("%s: got %s, want %s", symbol, got, want)
		}
	}
}

func FuzzDemangle(f *testing.F) {
	for _, seed := range []string{"_Z3fooi.cold", "_ZN3fooE", "_RNvCs1234_7mycrate3foo",
		"_ZN4core3fmt5write17h0123456789abcdefE", "_ZN3fooE.", "E."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, symbol string) {
		if got := Demangle(symbol); symbol != "" && got == "" {
			t.Errorf("%q has no name left", symbol)
		}
	})
}

func FuzzOpen(f *testing.F) {
	small := smallELF()
	f.Add(small)
	f.Add(small[:len(small)-64])
	f.Add([]byte("\x7fELF"))
	f.Add(namesOverlap(3, 50))
	f.Fuzz(func(t *testing.T, file []byte) {
		im, err := Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			if im != nil || !strings.Contains(err.Error(), "fuzzed") {
				t.Fatalf("%v, %v", im, err)
			}
			return
		}
		checkRanges(t, im)
		if lines, err := im.Lines(); err == nil {
			lines.At(smallCode)
		}
		for _, s := range im.Sections {
			if got := im.Bytes(s.Addr, s.Addr+uint64(len(s.Data))); len(s.Data) > 0 &&
				!bytes.Equal(got, s.Data) {
				t.Fatalf("section %s at %#x: %d of %d bytes", s.Name, s.Addr, len(got), len(s.Data))
			}
			im.FileOffset(s.Addr)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	for _, path := range []string{"/bin/bash", "/usr/bin/python3",
		"/lib/x86_64-linux-gnu/libc.so.6"} {
		if _, err := os.Stat(path); err != nil {
			continue
		}
		b.Run(filepath.Base(path), func(b *testing.B) {
			for b.Loop() {
				im, err := OpenFile(path)
				if err != nil {
					b.Fatal(err)
				}
				im.Close()
			}
		})
	}
}

func ExampleOpenFile() {
	im, err := OpenFile("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	text := im.Section(".text")
	_, ok := im.FileOffset(text.Addr)
	fmt.Println(text.Exec, text.Writable, ok)
	// Output: true false true
}

func ExampleOpen() {
	file := []byte("#!/usr/bin/python3\n")
	_, err := Open(bytes.NewReader(file), int64(len(file)), "report.py")
	fmt.Println(err)
	// Output: report.py is a script, not an ELF program: trace its interpreter
}

func ExampleDemangle() {
	fmt.Println(Demangle("_ZN5cache6insertEjPKc.part.0"))
	// Output: cache::insert.part.0
}

// A readerAt is a function that reads as an io.ReaderAt does.
type readerAt func(p []byte, at int64) (int, error)

func (read readerAt) ReadAt(p []byte, at int64) (int, error) { return read(p, at) }

// TestPanicsElsewhere: what a section's reading panics with, be it on another CPU, is reported in
// one line, without its stack.
func TestPanicsElsewhere(t *testing.T) {
	path := compile(t, "loops.c", loops)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := mustOpen(t, path).FileOffset(mustOpen(t, path).Section(".text").Addr)
	broken := readerAt(func(p []byte, at int64) (int, error) {
		if at == int64(text) {
			panic("no such place")
		}
		return bytes.NewReader(b).ReadAt(p, at)
	})
	if _, err := Open(broken, int64(len(b)), "program"); err == nil || strings.Contains(err.Error(),
		"\n") || !strings.Contains(err.Error(), "no such place") {
		t.Errorf("error %q, want one line with the cause", err)
	}
}
