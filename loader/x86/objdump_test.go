package x86

import (
	"bufio"
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// binaries returns the programs and libraries to decode: the first three are on every machine that
// has a compiler.
func binaries(t testing.TB) []string {
	t.Helper()
	found := []string{mustFind(t, "/bin/bash"),
		mustFind(t, "/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6"),
		mustFind(t, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", "/usr/lib64/libstdc++.so.6")}
	for _, path := range []string{"/usr/bin/python3", "/usr/bin/sqlite3"} {
		if testenv.Have(t, path) {
			found = append(found, path)
		}
	}
	return found
}

func mustFind(t testing.TB, paths ...string) string {
	t.Helper()
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("none of %v is installed", paths)
	return ""
}

// TestLengthsEqualObjdump decodes every executable section at each address where objdump found an
// instruction.
func TestLengthsEqualObjdump(t *testing.T) {
	for _, path := range binaries(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			compareWithObjdump(t, path)
		})
	}
}

func compareWithObjdump(t *testing.T, path string) {
	sections := executableSections(t, path)
	objdump := exec.Command("objdump", "-d", "-w", "-z", "--show-raw-insn", path)
	out, err := objdump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := objdump.Start(); err != nil {
		t.Fatalf("start objdump: %v", err)
	}
	insns, wrong := 0, 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		addr, length, text, ok := parseDisassembly(lines.Bytes())
		if !ok {
			continue
		}
		insns++
		code := sections.from(addr)
		in, ok := Decode(code)
		if ok && int(in.Len) == length {
			checkPromises(t, in, code, text)
			continue
		}
		if strings.Contains(text, "(bad)") || isLonePrefix(text) {
			continue
		}
		if wrong++; wrong <= 20 {
			t.Errorf("%x: % x: decoded %d bytes (ok %v), objdump has %d: %s", addr,
				code[:min(15, len(code))], in.Len, ok, length, text)
		}
	}
	if err := objdump.Wait(); err != nil {
		t.Fatalf("objdump %s: %v", path, err)
	}
	if insns < 30_000 {
		t.Errorf("%s: objdump listed only %d instructions", path, insns)
	}
	t.Logf("%d instructions, %d lengths differ", insns, wrong)
}

type code []section

type section struct {
	addr uint64
	data []byte
}

func executableSections(t testing.TB, path string) (c code) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatalf("read %s of %s: %v", s.Name, path, err)
		}
		c = append(c, section{s.Addr, data})
	}
	return c
}

func (c code) from(addr uint64) []byte {
	for _, s := range c {
		if addr >= s.addr && addr-s.addr < uint64(len(s.data)) {
			return s.data[addr-s.addr:]
		}
	}
	return nil
}

// parseDisassembly reads a line of objdump: address, colon, tab, bytes, tab, instruction.
func parseDisassembly(line []byte) (addr uint64, length int, text string, ok bool) {
	head, rest, found := bytes.Cut(line, []byte(":\t"))
	if !found {
		return 0, 0, "", false
	}
	addr, err := strconv.ParseUint(string(bytes.TrimSpace(head)), 16, 64)
	if err != nil {
		return 0, 0, "", false
	}
	raw, insn, found := bytes.Cut(rest, []byte("\t"))
	return addr, (len(bytes.TrimRight(raw, " ")) + 1) / len("90 "), string(insn), found
}

// isLonePrefix says whether objdump printed prefixes that no instruction follows (hand-written data
// among code).
func isLonePrefix(text string) bool {
	for _, word := range strings.Fields(text) {
		switch word {
		case "data16", "addr32", "cs", "ds", "es", "ss", "fs", "gs", "lock", "rep", "repz", "repnz",
			"xacquire", "xrelease", "{evex}":
		default:
			if !strings.HasPrefix(word, "rex") {
				return false
			}
		}
	}
	return true
}

// checkPromises checks what must hold for every instruction.
func checkPromises(t *testing.T, in Inst, code []byte, text string) {
	if in.Class(code) == Emulated && in.Kind == Other && in.Op != 0x90 && !in.isPush() {
		t.Errorf("% x is emulated", code[:in.Len])
	}
	if _, _, imm := in.Operands(code, 0); imm > int(in.Len) {
		t.Errorf("% x: immediate at %d", code[:in.Len], imm)
	}
	if in.WritesRSP(code) != namesRSPAsDestination(text) {
		t.Errorf("% x: writes rsp: %v, objdump has %s", code[:in.Len], in.WritesRSP(code), text)
	}
}

func BenchmarkDecode(b *testing.B) {
	text := executableSections(b, mustFind(b, "/bin/bash"))
	insns := 0
	for b.Loop() {
		for _, s := range text {
			for code := s.data; len(code) > 0; insns++ {
				in, ok := Decode(code)
				if !ok {
					in.Len = 1
				}
				code = code[in.Len:]
			}
		}
	}
	b.ReportMetric(float64(insns)/b.Elapsed().Seconds()/1e6, "Minsn/s")
}
