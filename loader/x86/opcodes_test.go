package x86

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bytes for each instruction, filled up with one long nop that may be entered at any prefix
const slot = 24

// TestEveryOpcodeEqualsObjdump crosses opcodes with prefixes and operands, and compares the length
// and whether rsp is written with what objdump says of them.
func TestEveryOpcodeEqualsObjdump(t *testing.T) {
	insns := everyOpcode()
	blob := bytes.Repeat(append(bytes.Repeat([]byte{0x66}, slot-1), 0x90), len(insns))
	for i, insn := range insns {
		copy(blob[i*slot:], insn)
	}
	path := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(path, blob, 0o600); err != nil {
		t.Fatal(err)
	}
	objdump := exec.Command("objdump", "-D", "-w", "-z", "-b", "binary", "-m", "i386:x86-64", path)
	out, err := objdump.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := objdump.Start(); err != nil {
		t.Fatalf("start objdump: %v", err)
	}
	checked := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		addr, length, text, ok := parseDisassembly(lines.Bytes())
		if !ok || addr%slot != 0 || strings.Contains(text, "(bad)") || isLonePrefix(text) ||
			isDisputed(blob[addr:]) {
			continue
		}
		checked++
		checkOpcode(t, blob[addr:addr+slot], length, text)
	}
	if err := objdump.Wait(); err != nil {
		t.Fatalf("objdump: %v", err)
	}
	if checked < len(insns)/4 {
		t.Errorf("objdump knew only %d of %d instructions", checked, len(insns))
	}
	t.Logf("%d instructions", checked)
}

// everyOpcode returns each opcode of each map under prefixes, with register and memory operands.
func everyOpcode() (insns [][]byte) {
	prefixes := []string{"", "\x66", "\xf2", "\xf3", "\x48", "\x41", "\x44", "\x66\x48", "\xf3\x48",
		"\xf2\x48"}
	modRMs := []byte{0xc4, 0xcc, 0xd4, 0xdc, 0xe4, 0xec, 0xf4, 0xfc, 0xe0, 0x44, 0x84, 0x05}
	for _, space := range []string{"", "\x0f", "\x0f\x38", "\x0f\x3a"} {
		for _, prefix := range prefixes {
			for op := range 256 {
				for _, modRM := range modRMs {
					insns = append(insns,
						append([]byte(prefix+space), byte(op), modRM, 0x24, 1, 2, 3, 4, 5, 6))
				}
			}
		}
	}
	for _, vex := range everyVEX() {
		for op := range 256 {
			for _, modRM := range []byte{0xc4, 0xe0, 0x44} {
				insns = append(insns, append([]byte(vex), byte(op), modRM, 0x24, 1, 2, 3, 4, 5, 6))
			}
		}
	}
	return insns
}

// everyVEX returns VEX and EVEX prefixes of each map and implied prefix, with vvvv rsp and none.
func everyVEX() (prefixes [][]byte) {
	for pp := byte(0); pp < 4; pp++ {
		for _, fields := range []byte{0x58, 0x78, 0xd8, 0xf8} { // W and vvvv
			for _, space := range []byte{1, 2, 3} {
				prefixes = append(prefixes, []byte{0xc4, 0xe0 | space, fields | pp})
			}
		}
		for _, fields := range []byte{0x7c, 0xfc} {
			for _, space := range []byte{1, 2, 3, 5, 6} {
				prefixes = append(prefixes, []byte{0x62, 0xf0 | space, fields | pp, 0x08})
			}
		}
	}
	return prefixes
}

func checkOpcode(t *testing.T, code []byte, length int, text string) {
	t.Helper()
	in, ok := Decode(code)
	switch {
	case ok && int(in.Len) != length:
		t.Errorf("% x: decoded %d bytes, objdump has %d: %s", code[:15], in.Len, length, text)
	case !ok:
		t.Errorf("% x: not decoded, objdump has %s", code[:15], text)
	case in.WritesRSP(code) != namesRSPAsDestination(text):
		t.Errorf("% x: writes rsp: %v, objdump has %s", code[:length], in.WritesRSP(code), text)
	}
}

// isDisputed names branches with a 66 prefix, of which vendors disagree, and fwait, which objdump
// joins to its successor.
func isDisputed(code []byte) bool {
	var in Inst
	code = code[decodePrefixes(&in, code):]
	switch op := code[0]; {
	case op == 0x9b:
		return true
	case op == 0x0f:
		return in.OpSize && in.Rex&8 == 0 && code[1]&0xf0 == 0x80
	default:
		return in.OpSize && in.Rex&8 == 0 && oneByte[op]&(rel8|rel32) != 0
	}
}

// readers are the instructions that write none of the operands that objdump prints, by their
// beginnings.
var readers = regexp.MustCompile(`^(nop|cmp[bwlq]?$|test|bt[wlq]?$|push|call|jmp|ljmp|lcall|i?mul[bwlq]?$|i?div[bwlq]?$|ud[01]|v?ucomis|vmwrite|` +
	`wr[fg]sbase|umwait|tpause|umonitor|ptwrite|movdir64b|inv|enqcmd|encodekey|ver[rw]|ltr|lmsw|lldt|incssp|lkgs|senduipi)`)

// namesRSPAsDestination reads the operands of an instruction in AT&T syntax, destinations last.
func namesRSPAsDestination(text string) bool {
	if !strings.Contains(text, "sp") {
		return false
	}
	text, _, _ = strings.Cut(text, "#")
	fields := strings.Fields(text)
	for len(fields) > 1 && isLonePrefix(fields[0]) {
		fields = fields[1:]
	}
	if len(fields) < 2 {
		return false
	}
	op, operands := fields[0], strings.Split(fields[1], ",")
	if readers.MatchString(op) && !(strings.HasPrefix(op, "imul") && len(operands) > 1) {
		return false
	}
	destinations := operands[len(operands)-1:]
	switch {
	case strings.HasPrefix(op, "xchg"), strings.HasPrefix(op, "xadd"):
		destinations = operands
	case op == "mulx":
		destinations = operands[1:]
	}
	return slices.ContainsFunc(destinations, func(operand string) bool {
		return operand == "%rsp" || operand == "%esp" || operand == "%sp" || operand == "%spl"
	})
}
