package recovery_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/image"
)

// TestUncoveredFunctions: a function that no unwind information covers is listed, once and with its
// extent; linkage stubs are none.
func TestUncoveredFunctions(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/uncovered.c", "-O1", "-fno-toplevel-reorder",
		"-fno-pie", "-no-pie"))
	const reason = "no unwind information"
	main, sized, unsized := routine(t, p, "main"), routine(t, p, "again"), routine(t, p, "unsized")
	for _, r := range p.Routines {
		if s := p.Image.SectionAt(r.Addr); strings.HasPrefix(s.Name, ".plt") ||
			r.Symbol == "sized" || r.Symbol == "label" {
			t.Errorf("%s at %x in %s is no routine", r.Name, r.Addr, s.Name)
		}
		if p.Routines[r.ID] != r || p.At(r.Addr) != r {
			t.Errorf("%s has number %d, and there is %v at %x", r.Name, r.ID, p.At(r.Addr), r.Addr)
		}
	}
	i := slices.IndexFunc(p.Image.Symbols(), func(s image.Symbol) bool { return s.Name == "sized" })
	length := p.Image.Symbols()[i].Size
	if r := sized.Ranges[0]; sized.LeftOut != reason || len(sized.Ranges) != 1 ||
		r[0] != sized.Addr || r[1]-r[0] != length {
		t.Errorf("sized: %q, %x; want %q, %d bytes", sized.LeftOut, sized.Ranges, reason, length)
	}
	if r := unsized.Ranges[0]; unsized.LeftOut != reason || len(unsized.Ranges) != 1 ||
		r[0] != unsized.Addr || r[1] < r[0]+4 || r[0] < main.Addr && r[1] > main.Addr {
		t.Errorf("unsized: %q, %x; want %q", unsized.LeftOut, unsized.Ranges, reason)
	}
}

// TestCodeThatIsNotCovered calls and jumps without anybody seeing it: what it mentions is as if its
// address was taken.
func TestCodeThatIsNotCovered(t *testing.T) {
	for _, flags := range [][]string{{"-O1", "-fPIE", "-pie"}, {"-O1", "-fno-pie", "-no-pie"}} {
		p := recoverFile(t, compileFile(t, "shapes/uncovered.c", flags...))
		for symbol, want := range map[string]bool{"called": true, "jumped": true, "pointed": true,
			"left": false} {
			if got := p.AddressTaken(routine(t, p, symbol).Addr); got != want {
				t.Errorf("%v: the address of %s is taken: %v, want %v", flags, symbol, got, want)
			}
		}
	}
}

// TestUnlisted: what no routine holds is linkage stubs and start-up code; padding is none of it.
func TestUnlisted(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/uncovered.c", "-O1", "-fno-pie", "-no-pie",
		"-fcf-protection=none", "-falign-functions=256"))
	least := 0
	for i := range p.Image.Sections {
		if s := &p.Image.Sections[i]; s.Exec && s.Name != ".text" {
			least += len(s.Data)
		}
	}
	const startup = 256 // frame_dummy and its like
	if got := p.Unlisted(); least == 0 || got < least || got > least+startup {
		t.Errorf("%d bytes, want %d or a little more", got, least)
	}
}

// How far __do_global_dtors_aux looks for its byte was taken for a jump to the middle of another
// routine, which was left out then.
func TestDistanceOfDestructors(t *testing.T) {
	const source = `
static volatile int sink;
int main(int c, char **v) { for (int i = 0; i < c; i++) sink += c * i; return sink; }`
	for _, flags := range [][]string{{"-O1", "-fno-pie", "-no-pie"}, {"-O1", "-fPIE", "-pie"}} {
		p := recoverFile(t, compile(t, source, flags...))
		i := slices.IndexFunc(p.Image.Symbols(),
			func(s image.Symbol) bool { return s.Name == "__do_global_dtors_aux" })
		if i < 0 {
			t.Fatal("no __do_global_dtors_aux: the test does not test")
		}
		const call = 0xe8
		at := p.Image.Symbols()[i].Addr
		// where the distance stands
		at += uint64(bytes.Index(p.Image.Bytes(at, at+16), []byte{0x80, 0x3d})) + 2
		main := routine(t, p, "main")
		for _, opcode := range []uint64{call, call + 1} {
			into := main.Blocks[1].Lo + 1 - (at + 5)
			distance := into<<8 | opcode
			bss := at + 5 + distance
			p := recoverFile(t,
				compile(t, source, append(flags, fmt.Sprintf("-Wl,-Tbss=%#x", bss))...))
			if got := p.Image.Bytes(at,
				at+5); binary.LittleEndian.Uint32(got) != uint32(distance) || got[4] != 0 {
				t.Fatalf("% x stands at %x, not the distance %x: the test does not test", got, at,
					distance)
			}
			if r := routine(t, p, "main"); r.LeftOut != "" {
				t.Errorf("%v, % x: %s", flags, p.Image.Bytes(at, at+5), r.LeftOut)
			}
		}
	}
}
