package image

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestLinesEqualAddr2line compares the line of every byte of the program's own functions with
// addr2line's.
func TestLinesEqualAddr2line(t *testing.T) {
	for _, flags := range []string{"-g -O0", "-g -O2", "-gdwarf-4 -O2", "-gdwarf-3 -O1 -no-pie",
		"-gdwarf-5 -gz -O3", "-gdwarf-5 -fdebug-types-section -O2",
		"-g -O2 -ffunction-sections -Wl,--gc-sections -Wl,--emit-relocs"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			path := compile(t, "exceptions.cc", exceptions, strings.Fields(flags)...)
			im := mustOpen(t, path)
			lines, err := im.Lines()
			if err != nil {
				t.Fatal(err)
			}
			addrs := ownCode(im)
			var input strings.Builder
			for _, addr := range addrs {
				fmt.Fprintf(&input, "%x\n", addr)
			}
			found := 0
			for i, want := range strings.Split(strings.TrimSpace(run(t, input.String(), "addr2line",
				"-e", path)), "\n") {
				want, _, _ = strings.Cut(want, " (discriminator")
				got := "??:?"
				if file, line, ok := lines.At(addrs[i]); ok {
					got = file + ":" + strconv.Itoa(line)
					found++
				} else if file != "" {
					got = file + ":?"
				}
				if got != want && !(strings.HasSuffix(want, ":?") && got == "??:?") {
					t.Errorf("%#x: got %s, addr2line has %s", addrs[i], got, want)
				}
			}
			if found < 100 || found < len(addrs)*9/10 {
				t.Errorf("%d of %d addresses have a line", found, len(addrs))
			}
		})
	}
}

// TestLinesOfDWARF64 compares the two sizes of DWARF: addr2line reads the small one only.
func TestLinesOfDWARF64(t *testing.T) {
	var rows [2][]lineRow
	for i, flag := range []string{"-gdwarf32", "-gdwarf64"} {
		lines, err := mustOpen(t,
			compile(t, "exceptions.cc", exceptions, "-O2", "-g", flag)).Lines()
		if err != nil {
			t.Fatal(err)
		}
		rows[i] = lines.rows
	}
	if len(rows[0]) < 10 || !slices.Equal(rows[0], rows[1]) {
		t.Errorf("%d rows, and %d in 64-bit DWARF", len(rows[0]), len(rows[1]))
	}
}

// ownCode returns the addresses of the functions that exceptions defines.
func ownCode(im *Image) (addrs []uint64) {
	for _, s := range im.Symbols() {
		if name := Demangle(s.Name); s.Dynamic || name != "main" && !strings.Contains(name,
			"thrower") && !strings.Contains(name, "catcher") && !strings.Contains(name, "Guard") {
			continue
		}
		for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

func TestLinesBetweenSequences(t *testing.T) {
	l := Lines{files: []string{"a.c"},
		rows: []lineRow{{10, 0, 1}, {20, noFile, 0}, {30, 0, 2}, {34, 0, 0}, {40, noFile, 0}}}
	for addr, want := range map[uint64]int{9: 0, 10: 1, 19: 1, 20: 0, 29: 0, 30: 2, 33: 2, 34: 0,
		40: 0, 99: 0} {
		if file, line, ok := l.At(addr); ok != (want > 0) || line != want || ok && file != "a.c" {
			t.Errorf("%d: %s:%d, %v", addr, file, line, ok)
		}
	}
	if _, _, ok := new(Lines).At(10); ok {
		t.Error("no rows, but a line")
	}
}

func TestNoLines(t *testing.T) {
	im := mustOpen(t, "/bin/bash")
	for range 2 {
		if lines, err := im.Lines(); lines != nil || !errors.Is(err, ErrNoLines) ||
			err.Error() != "read lines of bash: no line information" {
			t.Errorf("%v, %v", lines, err)
		}
	}
}

// lineELF makes a file with line information out of the sections of smallELF and those of DWARF.
func lineELF(abbrev, info, line []byte) []byte {
	var b elfBuilder
	b.add(".text", elf.SHT_PROGBITS, elf.SHF_ALLOC|elf.SHF_EXECINSTR, smallCode, 0,
		make([]byte, 64))
	at := uint64(smallCode + 64)
	for _, s := range []struct {
		name string
		data []byte
	}{{".debug_abbrev", abbrev}, {".debug_info", info}, {".debug_line", line}} {
		b.add(s.name, elf.SHT_PROGBITS, 0, at, 0, s.data)
		at += uint64(len(s.data))
	}
	return b.finish()
}

// smallDWARF returns one unit whose line table gives line 7 of f.c to smallCode and line 9 to
// smallCode + 4.
func smallDWARF() (abbrev, info, line []byte) {
	le := binary.LittleEndian
	// a unit without children: DW_AT_stmt_list, DW_FORM_sec_offset
	abbrev = []byte{1, 0x11, 0, 0x10, 0x17, 0, 0, 0}
	info = []byte{4, 0, 0, 0, 0, 0, 8, 1, 0, 0, 0, 0}
	info = append(le.AppendUint32(nil, uint32(len(info))), info...)
	header := append([]byte{1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0},
		"f.c\x00\x00\x00\x00\x00"...)
	program := append([]byte{0, 9, 2}, le.AppendUint64(nil, smallCode)...) // set_address
	// advance_line, copy, advance_pc ... end_sequence
	program = append(program, 3, 6, 1, 2, 4, 3, 2, 1, 2, 4, 0, 1, 1)
	body := le.AppendUint32([]byte{4, 0}, uint32(len(header)))
	body = append(append(body, header...), program...)
	return abbrev, info, append(le.AppendUint32(nil, uint32(len(body))), body...)
}

// smallDWARFWithoutFile is smallDWARF whose line table names no file.
func smallDWARFWithoutFile() (abbrev, info, line []byte) {
	abbrev, info, line = smallDWARF()
	name := bytes.Index(line, []byte("f.c\x00\x00\x00\x00\x00"))
	line = slices.Delete(line, name, name+len("f.c\x00\x00\x00\x00"))
	line[0] -= 7 // the length of the unit
	line[6] -= 7 // that of its header
	return abbrev, info, line
}

// smallLines reads the lines of a file.
func smallLines(t *testing.T, file []byte) *Lines {
	t.Helper()
	im, err := Open(bytes.NewReader(file), int64(len(file)), "small")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := im.Lines()
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestLinesOfNoFile: rows of a table that names no file were said to be of the first, which there
// was not, and looking for one ended wpptrace.
func TestLinesOfNoFile(t *testing.T) {
	lines := smallLines(t, lineELF(smallDWARFWithoutFile()))
	if len(lines.rows) == 0 {
		t.Error("there are no rows")
	}
	if file, line, ok := lines.At(smallCode); ok {
		t.Errorf("%s:%d", file, line)
	}
}

func TestSmallLines(t *testing.T) {
	lines := smallLines(t, lineELF(smallDWARF()))
	for addr, want := range map[uint64]int{smallCode - 1: 0, smallCode: 7, smallCode + 3: 7,
		smallCode + 4: 9, smallCode + 7: 9, smallCode + 8: 0} {
		if _, line, _ := lines.At(addr); line != want {
			t.Errorf("%#x: line %d, want %d", addr, line, want)
		}
	}
}

// TestLinesCorrupt changes each byte of the debug information: what comes is lines or an error that
// names the file.
func TestLinesCorrupt(t *testing.T) {
	abbrev, info, line := smallDWARF()
	file := lineELF(abbrev, info, line)
	from := bytes.Index(file, abbrev)
	for at := from; at < from+len(abbrev)+len(info)+len(line); at++ {
		for _, value := range []byte{0, 1, 0x7f, 0xff} {
			bad := slices.Clone(file)
			bad[at] = value
			im, err := Open(bytes.NewReader(bad), int64(len(bad)), "bad")
			if err != nil {
				t.Fatal(err)
			}
			if lines, err := im.Lines(); (lines == nil) == (err == nil) ||
				err != nil && !strings.HasPrefix(err.Error(), "read lines of bad: ") {
				t.Errorf("byte %#x at %#x: %v, %v", value, at, lines, err)
			}
		}
	}
}

func FuzzLines(f *testing.F) {
	abbrev, info, line := smallDWARF()
	f.Add(abbrev, info, line)
	abbrev, info, line = smallDWARFWithoutFile()
	f.Add(abbrev, info, line)
	f.Fuzz(func(t *testing.T, abbrev, info, line []byte) {
		file := lineELF(abbrev, info, line)
		im, err := Open(bytes.NewReader(file), int64(len(file)), "fuzzed")
		if err != nil {
			t.Fatal(err)
		}
		lines, err := im.Lines()
		if err != nil {
			return
		}
		for i, r := range lines.rows {
			if i > 0 && r.addr <= lines.rows[i-1].addr || r.file >= int32(len(lines.files)) ||
				r.file < noFile {
				t.Fatalf("row %d of %+v", i, lines.rows)
			}
		}
		lines.At(smallCode + 4)
	})
}

func ExampleImage_Lines() {
	im, err := OpenFile("/proc/self/exe")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	_, err = im.Lines()
	fmt.Println(err == nil || strings.HasSuffix(err.Error(), ErrNoLines.Error()))
	// Output: true
}
