package recovery_test

import (
	"strconv"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/soundness"
)

// What is left out, and what is in no routine, may enter others from any of its bytes.
func TestWaysOutOfSight(t *testing.T) {
	for _, flags := range [][]string{{"-O1", "-fPIE", "-pie", "-Wl,--no-relax"},
		{"-O1", "-fno-pie", "-no-pie", "-Wl,--no-relax"}} {
		p := recoverFile(t, compileFile(t, "shapes/out-of-sight.c", flags...))
		for symbol, want := range map[string]bool{"nobodys": false, "behind_data": true,
			"near_data": true, "amid_data": true, "named_amid_data": true, "behind_pointer": true} {
			if r := routine(t, p, symbol); p.AddressTaken(r.Addr) != want || r.LeftOut != "" {
				t.Errorf("%v: the address of %s is taken: %v; left out: %q", flags, symbol, !want,
					r.LeftOut)
			}
		}
		for symbol, want := range map[string]string{
			"halves":                  "jumped to in its middle at ",
			"thirds":                  "jumped to in its middle at ",
			"quarters":                "jumped to in its middle at ",
			"lands":                   "what enters it with a frame at ",
			"seems_endless":           "calls what may return elsewhere at ",
			"calls_jumps_by_register": "calls what may return elsewhere at ",
			"calls_by_slot":           "calls what may return elsewhere at ",
			"calls_by_register":       "may call through a pointer what may return elsewhere",
		} {
			if r := routine(t, p, symbol); !strings.HasPrefix(r.LeftOut, want) {
				t.Errorf("%v: %s is left out: %q, want %q", flags, symbol, r.LeftOut, want)
			}
		}
	}
}

// Where a routine goes that is left out is not known: it may return, though it seems never to.
func TestLeftOutMayReturn(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/out-of-sight.c", "-O1"))
	for symbol, want := range map[string]int{"calls_seems_endless": 0, "calls_endless": 1} {
		if got := ends(routine(t, p, symbol))[cfg.NoReturn]; got != want {
			t.Errorf("%s has %d calls that never return, want %d", symbol, got, want)
		}
	}
}

// A routine that jumps to setjmp returns twice, too, however it jumps.
func TestJumpsToSetjmp(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/out-of-sight.c", "-O1"))
	for symbol, want := range map[string]bool{"plain": false, "sets_directly": true,
		"sets_by_slot": true, "sets_by_register": true, "sets_by_two": true,
		"sets_by_hidden_register": true, "sets_out_of_sight": true} {
		r := routine(t, p, "calls_"+symbol)
		for b := range r.Blocks {
			if got := p.CallReturnsTwice(r, b); r.Blocks[b].End == cfg.Call && got != want {
				t.Errorf("the call of %s returns twice: %v, want %v", symbol, got, want)
			}
		}
	}
}

// Of each of these chains one routine leads to the one before it, and there are more of them than
// rounds in which they are looked for.
func TestLongChains(t *testing.T) {
	const length = 3 * soundness.MostRounds
	source := `#include "shapes/out-of-sight.c"

		ROUTINE(link0, "mov $1,%eax\n.Llink0: ret\n")
		ROUTINE(last, PUSHED "jmp *(%rdi)\ncall .Llink` + strconv.Itoa(length) + `\n")
		ROUTINE(set0, "jmp _setjmp@PLT\n")
		CALLER(set` + strconv.Itoa(length) + ")\n"
	for i := range length {
		source += strings.NewReplacer("THIS", strconv.Itoa(i+1), "BEFORE", strconv.Itoa(i)).Replace(`
			ROUTINE(linkTHIS, "mov $1,%eax\n.LlinkTHIS: ret\ncall .LlinkBEFORE\n")
			ROUTINE(setTHIS, "lea setBEFORE(%rip),%rax\njmp *%rax\n")`)
	}
	p := recoverFile(t, compile(t, source, "-O1", "-Itestdata"))
	if r := routine(t, p, "link0"); !strings.HasPrefix(r.LeftOut, "called in its middle at ") {
		t.Errorf("link0 is left out: %q", r.LeftOut)
	}
	caller := routine(t, p, "calls_set"+strconv.Itoa(length))
	for b := range caller.Blocks {
		if caller.Blocks[b].End == cfg.Call && !p.CallReturnsTwice(caller, b) {
			t.Error("the call of the end of the chain does not return twice")
		}
	}
}
