package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestRowsEqualReadelf compares the unwind rows of every range with those that readelf prints.
func TestRowsEqualReadelf(t *testing.T) {
	library := strings.TrimSpace(run(t, "", "g++", "-print-file-name=libstdc++.so.6"))
	for _, path := range []string{"/bin/bash", library,
		compile(t, "exceptions.cc", exceptions, "-O2"), compile(t, "realigned.c", realigned,
			"-O2")} {
		im := mustOpen(t, path)
		want := readelfRows(t, path)
		rows := 0
		for _, r := range im.Ranges {
			if r.Fault() != "" {
				t.Errorf("%s: range at %#x: %s", path, r.Lo, r.Fault())
			}
			if diff := cmp.Diff(want[r.Lo], withoutSlots(r.AppendRows(nil))); diff != "" {
				t.Errorf("%s: rows at %#x -readelf +image\n%s", path, r.Lo, diff)
			}
			rows += len(r.AppendRows(nil))
		}
		if len(im.Ranges) < 3 {
			t.Errorf("%s has %d ranges", path, len(im.Ranges))
		}
		t.Logf("%s: %d ranges, %d rows", path, len(im.Ranges), rows)
	}
}

// withoutSlots returns rows as readelf prints them: all expressions alike.
func withoutSlots(rows []Row) []Row {
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].CFA.Reg == Slot {
			rows[i].CFA = CFA{Reg: Expression}
		}
	}
	return rows
}

// realigned has a routine that aligns its stack and finds its arguments, which have no fixed
// distance then, by a register that it keeps.
const realigned = `
#include <string.h>
volatile int sink;
__attribute__((noinline)) int aligned(int n)
{
	_Alignas(32) char fixed[64];
	char *variable = __builtin_alloca(n);
	memset(fixed, n, sizeof fixed);
	memset(variable, n, n);
	sink += fixed[n & 31] + variable[n - 1];
	return sink;
}
int main(int n, char **v) { return aligned(n) & 1; }
`

// TestSlotsEqualReadelf compares the frame addresses that routines keep in a slot with the
// instructions that readelf prints.
func TestSlotsEqualReadelf(t *testing.T) {
	for _, level := range []string{"-O0", "-O2", "-O3"} {
		path := compile(t, "realigned.c", realigned, level)
		want, got := map[string]bool{}, map[string]bool{}
		for _, m := range regexp.MustCompile(`DW_CFA_def_cfa_expression \(DW_OP_breg6 \(rbp\): (-?\d+); DW_OP_deref\)`).FindAllStringSubmatch(run(t, "", "readelf", "--debug-dump=frames", "-W", path), -1) {
			want[m[1]] = true
		}
		for _, r := range mustOpen(t, path).Ranges {
			for _, row := range r.AppendRows(nil) {
				if row.CFA.Reg == Slot {
					got[strconv.Itoa(int(row.CFA.Off))] = true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("%s: slots -readelf +image\n%s", level, diff)
		}
	}
}

// readelfRows returns the rows of each frame description entry by its first address, without those
// that repeat.
func readelfRows(t *testing.T, path string) map[uint64][]Row {
	entry :=
		regexp.MustCompile(`^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) .*pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
	common := regexp.MustCompile(`^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE`)
	row := regexp.MustCompile(`^([0-9a-f]{16}) (\S+) .*?(\S+)\s*$`)
	initial := map[string]Row{}
	rows := map[uint64][]Row{}
	var cie string
	var lo, hi uint64
	for line := range strings.Lines(run(t, "", "readelf", "--debug-dump=frames-interp", "-W",
		path)) {
		if m := common.FindStringSubmatch(line); m != nil {
			cie, hi = m[1], 0
		} else if m := entry.FindStringSubmatch(line); m != nil {
			lo, hi = hexNumber(t, m[2]), hexNumber(t, m[3])
			first := initial[strings.TrimLeft(m[1], "0")]
			first.PC = lo
			rows[lo] = []Row{first} // readelf prints no rows for an entry without instructions
		} else if m := row.FindStringSubmatch(line); m != nil {
			r := Row{PC: hexNumber(t, m[1]), CFA: parseCFA(t, m[2]), RA: parseRA(m[3])}
			if hi == 0 {
				initial[strings.TrimLeft(cie, "0")] = r
				continue
			}
			addRow(rows, lo, hi, r)
		}
	}
	return rows
}

func addRow(rows map[uint64][]Row, lo, hi uint64, r Row) {
	before := rows[lo]
	last := before[len(before)-1]
	switch {
	case r.PC == lo:
		rows[lo] = []Row{r}
	case r.PC < hi && (r.CFA != last.CFA || r.RA != last.RA):
		rows[lo] = append(before, r)
	}
}

func hexNumber(t *testing.T, digits string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func parseCFA(t *testing.T, text string) CFA {
	t.Helper()
	if text == "exp" {
		return CFA{Reg: Expression}
	}
	dwarf := []string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10",
		"r11", "r12", "r13", "r14", "r15"}
	reg, off, _ := strings.Cut(text, "+")
	number, err := strconv.Atoi(off)
	if err != nil || !slices.Contains(dwarf, reg) {
		t.Fatalf("readelf printed %q as a frame address", text)
	}
	return CFA{Reg: int8(slices.Index(dwarf, reg)), Off: int32(number)}
}

func parseRA(text string) RARule {
	switch text {
	case "c-8":
		return RAAtCFA
	case "u":
		return RAUndefined
	}
	return RAOther
}

func TestSmallImage(t *testing.T) {
	file := smallELF()
	im, err := Open(bytes.NewReader(file), int64(len(file)), "dir/small")
	if err != nil {
		t.Fatal(err)
	}
	want := NewRange(smallCode, smallCode+16,
		Row{PC: smallCode, CFA: CFA{7, 8}},
		Row{PC: smallCode + 1, CFA: CFA{7, 16}},
		Row{PC: smallCode + 15, CFA: CFA{7, 8}},
	)
	want.more = &details{calls: []CallSite{
		{Lo: smallCode + 2, Hi: smallCode + 6, Pad: smallCode + 10, Action: 1},
		{Lo: smallCode + 8, Hi: smallCode + 9},
	}}
	if diff := cmp.Diff([]Range{want}, im.Ranges, cmpopts.IgnoreUnexported(Range{})); diff != "" {
		t.Errorf("ranges -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want.Calls(), im.Ranges[0].Calls()); diff != "" {
		t.Errorf("call sites -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want.AppendRows(nil), im.Ranges[0].AppendRows(nil)); diff != "" ||
		im.Ranges[0].EntryCFA() != (CFA{7, 8}) {
		t.Errorf("rows -want +got\n%s", diff)
	}
	const data = smallTable + 0x180
	if diff := cmp.Diff(map[uint64]string{data + 8: "puts", smallCode + 0x40: "puts",
		smallCode + 0x44: "puts"}, im.Imports()); diff != "" {
		t.Errorf("imports -want +got\n%s", diff)
	}
	const inPlace = 0x1111111111111111
	if diff := cmp.Diff(Relocations{{data, inPlace}, {data + 8, inPlace}, {data + 16, inPlace},
		{data + 24, smallCode + 4}}, im.Relocations()); diff != "" {
		t.Errorf("relocations -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]uint64{smallCode + 8}, im.Resolvers()); diff != "" {
		t.Errorf("resolvers -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]Symbol{{Name: "f", Addr: smallCode, Size: 16, Dynamic: true}},
		im.Symbols()); diff != "" {
		t.Errorf("symbols -want +got\n%s", diff)
	}
	if im.Name != "small" || im.BuildID != "c0ffee00" || im.Entry != smallCode || !im.PIE {
		t.Errorf("%s, build id %s, entry %#x, pie %v", im.Name, im.BuildID, im.Entry, im.PIE)
	}
}

// A describedRange is what an entry describes.
type describedRange struct {
	Lo    uint64
	Rows  []Row
	Fault string
}

// readFrames reads the entries of a section at address 0, each twice.
func readFrames(data []byte) (list []describedRange, err error) {
	f := &frames{data: data}
	var twice error
	err = f.each(func(at uint64, e frameEntry) {
		d := describedRange{Lo: e.lo}
		d.Rows, d.Fault = e.rows(nil)
		r := Range{frames: f, at: uint32(at), more: &details{fault: d.Fault}}
		if !slices.Equal(d.Rows, r.AppendRows(nil)) {
			twice = fmt.Errorf("rows %+v, then %+v", d.Rows, r.AppendRows(nil))
		}
		list = append(list, d)
	})
	return list, errors.Join(err, twice)
}

// frameData makes an .eh_frame section at address 0 with one common entry and one entry of 256
// bytes at smallCode.
func frameData(version byte, augmentation string, initial, program []byte) []byte {
	le := binary.LittleEndian
	common := append([]byte{0, 0, 0, 0, version}, augmentation...)
	common = append(common, 0, 1, 0x78, 16)
	if strings.HasPrefix(augmentation, "z") {
		common = append(common, 0)
	}
	common = append(common, initial...)
	data := append(le.AppendUint32(nil, uint32(len(common))), common...)
	entry := le.AppendUint32(nil, uint32(len(data)+4))
	entry = le.AppendUint64(le.AppendUint64(entry, smallCode), 256)
	if strings.HasPrefix(augmentation, "z") {
		entry = append(entry, 0)
	}
	entry = append(entry, program...)
	return append(le.AppendUint32(data, uint32(len(entry))), entry...)
}

var usual = []byte{defCFA, 7, 8, offset<<6 | 16, 1}

func TestFrameProgram(t *testing.T) {
	first := Row{PC: smallCode, CFA: CFA{7, 8}}
	for _, test := range []struct {
		name    string
		program []byte
		want    []Row
	}{
		{"empty", nil, []Row{first}},
		{"push", []byte{advanceLoc<<6 | 2, defCFAOffset, 16},
			[]Row{first, {PC: smallCode + 2, CFA: CFA{7, 16}}}},
		{"frame pointer", []byte{advanceLoc1, 4, defCFARegister, 6},
			[]Row{first, {PC: smallCode + 4, CFA: CFA{6, 8}}}},
		{"location set", append([]byte{setLoc}, 0x10, 0x10, 0, 0, 0, 0, 0, 0, defCFAOffset, 24),
			[]Row{first, {PC: smallCode + 16, CFA: CFA{7, 24}}}},
		{"nothing changes", []byte{advanceLoc2, 1, 0, offset<<6 | 3, 2, advanceLoc4, 1, 0, 0, 0,
			gnuArgsSize, 8}, []Row{first}},
		{"remembered", []byte{rememberState, advanceLoc<<6 | 1, defCFA, 6, 16, advanceLoc<<6 | 1,
			restoreState},
			[]Row{first, {PC: smallCode + 1, CFA: CFA{6, 16}},
				{PC: smallCode + 2, CFA: CFA{7, 8}}}},
		{"signed", []byte{defCFASF, 7, 0x7e, advanceLoc<<6 | 1, defCFAOffsetSF, 0x7c},
			[]Row{{PC: smallCode, CFA: CFA{7, 16}}, {PC: smallCode + 1, CFA: CFA{7, 32}}}},
		{"expression", []byte{defCFAExpression, 2, 0x77, 8, advanceLoc<<6 | 1, defCFAOffset, 8},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}},
				{PC: smallCode + 1, CFA: CFA{Reg: Undefined}}}},
		{"expression, then a register",
			[]byte{defCFAExpression, 0, advanceLoc<<6 | 1, defCFARegister, 7},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}},
				{PC: smallCode + 1, CFA: CFA{Reg: Undefined}}}},
		{"slot", []byte{defCFAExpression, 3, 0x76, 0x70, 0x06, advanceLoc<<6 | 1, defCFA, 10, 0},
			[]Row{{PC: smallCode, CFA: CFA{Slot, -16}}, {PC: smallCode + 1, CFA: CFA{10, 0}}}},
		{"slot far away", []byte{defCFAExpression, 4, 0x76, 0xf0, 0x7e, 0x06},
			[]Row{{PC: smallCode, CFA: CFA{Slot, -144}}}},
		{"slot, then an offset",
			[]byte{defCFAExpression, 3, 0x76, 0x70, 0x06, advanceLoc<<6 | 1, defCFAOffset, 8},
			[]Row{{PC: smallCode, CFA: CFA{Slot, -16}},
				{PC: smallCode + 1, CFA: CFA{Reg: Undefined}}}},
		{"slot, then a register",
			[]byte{defCFAExpression, 3, 0x76, 0x70, 0x06, advanceLoc<<6 | 1, defCFARegister, 7},
			[]Row{{PC: smallCode, CFA: CFA{Slot, -16}},
				{PC: smallCode + 1, CFA: CFA{Reg: Undefined}}}},
		{"slot of rsp", []byte{defCFAExpression, 3, 0x77, 0x70, 0x06},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}}},
		{"slot without its contents", []byte{defCFAExpression, 2, 0x76, 0x70},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}}},
		{"slot and more", []byte{defCFAExpression, 5, 0x76, 0x70, 0x06, 0x23, 0x08},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}}},
		{"slot of a slot", []byte{defCFAExpression, 4, 0x76, 0x70, 0x06, 0x06},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}}},
		{"slot cut off in its offset",
			[]byte{defCFAExpression, 2, 0x76, 0xf0, advanceLoc<<6 | 1, defCFA, 7, 8},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}, {PC: smallCode + 1, CFA: CFA{7, 8}}}},
		{"slot too far", []byte{defCFAExpression, 7, 0x76, 0x80, 0x80, 0x80, 0x80, 0x08, 0x06},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Expression}}}},
		{"offset too large", []byte{defCFAOffset, 0x80, 0x80, 0x80, 0x80, 0x08},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Undefined}}}},
		{"offset of 64 bits", []byte{defCFAOffset, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 0x01}, []Row{{PC: smallCode, CFA: CFA{Reg: Undefined}}}},
		{"register too large", []byte{defCFA, 0x80, 0x02, 8},
			[]Row{{PC: smallCode, CFA: CFA{Reg: Undefined}}}},
		{"outermost", []byte{undefined, 16},
			[]Row{{PC: smallCode, CFA: CFA{7, 8}, RA: RAUndefined}}},
		{"return address in a register",
			[]byte{register, 16, 0, advanceLoc<<6 | 1, restore<<6 | 16},
			[]Row{{PC: smallCode, CFA: CFA{7, 8}, RA: RAOther},
				{PC: smallCode + 1, CFA: CFA{7, 8}}}},
		{"return address elsewhere",
			[]byte{offset<<6 | 16, 2, advanceLoc<<6 | 1, restoreExtended, 16},
			[]Row{{PC: smallCode, CFA: CFA{7, 8}, RA: RAOther},
				{PC: smallCode + 1, CFA: CFA{7, 8}}}},
		{"return address by expression", []byte{expression, 16, 1, 0x12},
			[]Row{{PC: smallCode, CFA: CFA{7, 8}, RA: RAOther}}},
		{"other registers", []byte{undefined, 3, sameValue, 3, register, 3, 4, expression, 3, 0,
			valOffset, 3, 1, valOffsetSF, 3, 1, valExpression, 3, 0, offsetExtended, 3, 1,
			offsetExtendedSF, 3, 1, gnuNegativeOffsetExtSF, 3, 1, restoreExtended, 3},
			[]Row{first}},
		{"to the end", []byte{advanceLoc2, 0, 1, defCFAOffset, 16}, []Row{first}},
	} {
		entries, err := readFrames(frameData(1, "", usual, test.program))
		if err != nil || len(entries) != 1 || entries[0].Fault != "" {
			t.Errorf("%s: %+v, %v", test.name, entries, err)
			continue
		}
		if diff := cmp.Diff(test.want, entries[0].Rows); diff != "" {
			t.Errorf("%s: rows -want +got\n%s", test.name, diff)
		}
	}
}

func TestFrameFaults(t *testing.T) {
	for _, test := range []struct {
		name             string
		version          byte
		augmentation     string
		initial, program []byte
		want             string
	}{
		{"unknown instruction", 1, "", usual, []byte{0x3f}, "unknown call frame instruction 0x3f"},
		{"unknown common instruction", 1, "", []byte{0x20}, nil,
			"unknown call frame instruction 0x20"},
		{"cut off", 1, "z", usual, []byte{defCFAOffset, 0x80},
			"call frame instructions are cut off or leave their range"},
		{"expression cut off", 1, "z", usual, []byte{defCFAExpression, 0x7f},
			"call frame instructions are cut off or leave their range"},
		{"out of range", 1, "", usual, []byte{advanceLoc2, 1, 1},
			"call frame instructions are cut off or leave their range"},
		{"backwards", 1, "", usual, []byte{advanceLoc<<6 | 8, setLoc, 0, 0x10, 0, 0, 0, 0, 0, 0},
			"call frame instructions are cut off or leave their range"},
		{"nothing remembered", 1, "", usual, []byte{restoreState},
			"call frame instructions are cut off or leave their range"},
		{"long number", 1, "", usual,
			append([]byte{defCFAOffset}, bytes.Repeat([]byte{0x80}, 20)...),
			"call frame instructions are cut off or leave their range"},
		{"augmentation without length", 1, "eh", usual, nil, `unknown augmentation "eh"`},
		{"unknown augmentation", 1, "zX", usual, nil, `unknown augmentation "zX"`},
		{"augmentation cut off", 1, "zR", usual, nil, `cannot read augmentation "zR"`},
		{"version", 4, "", usual, nil, "unwind information of version 4"},
	} {
		entries, err := readFrames(frameData(test.version, test.augmentation, test.initial,
			test.program))
		if err != nil || len(entries) != 1 || entries[0].Lo != smallCode ||
			entries[0].Fault != test.want || len(entries[0].Rows) != 0 {
			t.Errorf("%s: %+v, %v", test.name, entries, err)
		}
	}
}

// TestFrameRecords checks the forms of records that compilers do not write.
func TestFrameRecords(t *testing.T) {
	le := binary.LittleEndian
	data := frameData(1, "", usual, nil)
	commonLen := 4 + int(le.Uint32(data))

	terminated := append(append(slices.Clone(data[:commonLen]), 0, 0, 0, 0), data[commonLen:]...)
	le.PutUint32(terminated[commonLen+8:], uint32(commonLen+8))
	extended := le.AppendUint64(append(slices.Clone(data[:commonLen]), 0xff, 0xff, 0xff, 0xff),
		uint64(len(data)-commonLen-4))
	extended = append(extended, data[commonLen+4:]...)
	le.PutUint32(extended[commonLen+12:], uint32(commonLen+12))
	for name, data := range map[string][]byte{"terminator within": terminated,
		"64-bit length": extended} {
		entries, err := readFrames(data)
		if err != nil || len(entries) != 1 || len(entries[0].Rows) != 1 {
			t.Errorf("%s: %+v, %v", name, entries, err)
		}
	}

	orphan := slices.Clone(data)
	le.PutUint32(orphan[commonLen+4:], 0x1234)
	if entries, err := readFrames(orphan); err != nil || len(entries) != 0 {
		t.Errorf("entry without common entry: %+v, %v", entries, err)
	}
	for _, length := range [][]byte{{0xf0, 0, 0, 0}, {0xff, 0xff, 0xff, 0xff},
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if entries, err := readFrames(append(slices.Clone(data), length...)); err == nil {
			t.Errorf("record of length % x: %+v", length, entries)
		}
	}
}

// TestFrameProgramsOfAnyRows writes random rows as instructions and reads them back.
func TestFrameProgramsOfAnyRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := []Row{{PC: smallCode, CFA: CFA{7, 8}}}
		var program []byte
		pc := uint64(smallCode)
		for range rapid.IntRange(0, 20).Draw(t, "rows") {
			delta := rapid.IntRange(1, 12).Draw(t, "delta")
			program = append(program, rapid.SampledFrom([][]byte{
				{byte(advanceLoc<<6 | delta)}, {advanceLoc1, byte(delta)}, {advanceLoc2,
					byte(delta), 0}, {advanceLoc4, byte(delta), 0, 0, 0},
			}).Draw(t, "advance")...)
			pc += uint64(delta)
			next := Row{
				PC: pc,
				CFA: CFA{Reg: int8(rapid.IntRange(0, 15).Draw(t, "register")),
					Off: rapid.Int32Range(0, 1<<30).Draw(t, "offset")},
				RA: RARule(rapid.IntRange(0, 2).Draw(t, "return address")),
			}
			program = binary.AppendUvarint(append(program, defCFA, byte(next.CFA.Reg)),
				uint64(next.CFA.Off))
			program = append(program,
				[][]byte{{offset<<6 | 16, 1}, {undefined, 16}, {sameValue, 16}}[next.RA]...)
			want = append(want, next)
		}
		entries, err := readFrames(frameData(1, "", usual, program))
		if err != nil || len(entries) != 1 || entries[0].Fault != "" {
			t.Fatalf("%+v, %v", entries, err)
		}
		if diff := cmp.Diff(mergedRows(want), entries[0].Rows); diff != "" {
			t.Errorf("rows -want +got\n%s", diff)
		}
	})
}

func mergedRows(rows []Row) []Row {
	return slices.CompactFunc(slices.Clone(rows),
		func(a, b Row) bool { return a.CFA == b.CFA && a.RA == b.RA })
}

// TestCallSites checks the landing pads of a compiled program.
func TestCallSites(t *testing.T) {
	for _, flags := range []string{"-O0", "-O2 -fPIE -pie", "-O2 -no-pie", "-Os -static"} {
		im := mustOpen(t, compile(t, "exceptions.cc", exceptions, strings.Fields(flags)...))
		for _, name := range []string{"_Z7catcheri", "_Z7throweri"} {
			s := symbolNamed(t, im, name)
			pads := 0
			for _, r := range im.Ranges {
				for _, c := range r.Calls() {
					if c.Pad != 0 && s.Addr <= c.Pad && c.Pad < s.Addr+s.Size {
						pads++
					}
				}
			}
			if strings.Contains(flags, "-O0") && pads == 0 {
				t.Errorf("%s: %s has no landing pad", flags, name)
			}
		}
		checkPads(t, im)
	}
	checkPads(t, mustOpen(t, "/lib/x86_64-linux-gnu/libc.so.6"))
}

// checkPads checks that all call sites lie in their range and all landing pads in code that is
// described.
func checkPads(t *testing.T, im *Image) {
	t.Helper()
	pads := 0
	for _, r := range im.Ranges {
		for _, c := range r.Calls() {
			if c.Lo < r.Lo || c.Hi > r.Hi || c.Lo >= c.Hi {
				t.Errorf("call site %+v outside of %#x-%#x", c, r.Lo, r.Hi)
			}
			if c.Pad == 0 {
				continue
			}
			if pads++; rangeAt(im, c.Pad) == nil {
				t.Errorf("call site %+v lands nowhere", c)
			}
		}
	}
	if pads == 0 {
		t.Errorf("%s has no landing pads", im.Name)
	}
}

// TestCallSitesOverlap checks that tables which overlap do not multiply.
func TestCallSitesOverlap(t *testing.T) {
	const size = 1 << 14
	table := append([]byte{0xff, 0xff, formatULEB, 0xfc, 0x7f}, make([]byte, size)...)
	im := &Image{Sections: []Section{{Addr: smallTable, Data: table}}}
	reader := callSiteReader{image: im}
	r := Range{Lo: smallCode, Hi: smallCode + 16}
	understood := 0
	for range 1000 {
		if _, fault := reader.read(smallTable, r); fault == "" {
			understood++
		}
	}
	if understood > 5 || understood == 0 || reader.total > len(table)+1000 {
		t.Errorf("%d tables, %d call sites from %d bytes", understood, reader.total, len(table))
	}
}

func TestCallSitesFaults(t *testing.T) {
	for name, table := range map[string][]byte{
		"empty":        {},
		"too long":     {0xff, 0xff, formatULEB, 9, 2, 4, 10, 1},
		"cut off":      {0xff, 0xff, formatULEB, 3, 2, 4, 10},
		"out of range": {0xff, 0xff, formatULEB, 4, 2, 40, 10, 1},
		"wraps around": {0xff, 0xff, formatU64, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"unknown form":  {0xff, 0xff, 0x07, 4, 2, 4, 10, 1},
		"relative form": {0xff, 0xff, 0x33, 13, 2, 0, 0, 0, 4, 0, 0, 0, 10, 0, 0, 0, 1},
	} {
		im := &Image{Sections: []Section{{Addr: smallTable, Data: append(table, 0)[:len(table)]}}}
		reader := callSiteReader{image: im}
		if calls, fault := reader.read(smallTable,
			Range{Lo: smallCode, Hi: smallCode + 16}); fault == "" || calls != nil {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(smallFrameData(), smallCallSites())
	f.Add(frameData(1, "", usual,
		[]byte{rememberState, advanceLoc<<6 | 1, defCFA, 6, 16, restoreState}), []byte{})
	f.Add(frameData(3, "zS", usual, []byte{defCFAExpression, 2, 0x77, 8}),
		[]byte{0xff, 0xff, formatULEB, 0})
	f.Fuzz(func(t *testing.T, frames, table []byte) {
		im := &Image{Name: "fuzzed", Sections: []Section{
			{Name: ".text", Addr: smallCode, Data: make([]byte, 256), Exec: true},
			{Name: ".eh_frame", Addr: smallFrames, Data: frames},
			{Name: ".gcc_except_table", Addr: smallTable, Data: table},
		}}
		if len(frames) > smallTable-smallFrames {
			im.Sections = slices.Delete(im.Sections, 2, 3)
		}
		if err := im.readFrames(); err != nil {
			return
		}
		checkRanges(t, im)
	})
}

// checkRanges checks what every image promises of its ranges.
func checkRanges(t *testing.T, im *Image) {
	end := uint64(0)
	for _, r := range im.Ranges {
		if r.Lo < end || r.Hi <= r.Lo || im.Bytes(r.Lo, r.Hi) == nil {
			t.Fatalf("range %#x-%#x behind %#x", r.Lo, r.Hi, end)
		}
		end = r.Hi
		rows := r.AppendRows(nil)
		if (r.Fault() == "") != (len(rows) > 0) || r.Fault() != "" && len(r.Calls()) > 0 {
			t.Fatalf("range %+v", r)
		}
		for i, row := range rows {
			if i == 0 && row.PC != r.Lo || i > 0 && row.PC <= rows[i-1].PC || row.PC >= r.Hi {
				t.Fatalf("row %d of %+v", i, r)
			}
		}
		for _, c := range r.Calls() {
			if c.Lo < r.Lo || c.Hi > r.Hi || c.Hi < c.Lo {
				t.Fatalf("call site %+v of %#x-%#x", c, r.Lo, r.Hi)
			}
		}
	}
}
