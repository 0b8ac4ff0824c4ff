package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
)

// assemble wraps routines of assembly, each a name and its body, into a C program whose main calls
// the first.
func assemble(routines ...[2]string) string {
	var s strings.Builder
	s.WriteString("asm(\".text\\n\"\n")
	for _, r := range routines {
		s.WriteString("\".type " + r[0] + ", @function\\n" + r[0] + ": .cfi_startproc\\n" + r[1] +
			"\\n.cfi_endproc\\n.size " + r[0] + ", .-" + r[0] + "\\n\"\n")
	}
	s.WriteString(");\nint main(void) { asm volatile(\"call " + routines[0][0] +
		"\"); return 0; }\n")
	return s.String()
}

// TestCircleWithoutAPlaceForAProbe: it is broken by leaving routines out, and their callers are
// planned anew.
func TestCircleWithoutAPlaceForAProbe(t *testing.T) {
	const call = `.byte 0x48, 0xe8\n.long %s - . - 4\nret` // a prefix that no probe may sit on
	p := planned(t, compile(t, assemble(
		[2]string{"even", strings.ReplaceAll(call, "%s", "odd")},
		[2]string{"odd", strings.ReplaceAll(call, "%s", "even")}), "-O1"), planner.Options{})
	prove(t, p)
	for _, r := range p.Routines {
		if (r.Symbol == "even" || r.Symbol == "odd") && r.Traced() {
			t.Errorf("%s is traced", r.Symbol)
		}
	}
}

// TestCircleIsBrokenWhereItIsEnteredLeast, whatever its routines cost for one activation.
func TestCircleIsBrokenWhereItIsEnteredLeast(t *testing.T) {
	c := compile(t, assemble([2]string{"even", `call odd\nret`},
		[2]string{"odd", `call even\nret`}), "-O1")
	for _, seldom := range []string{"even", "odd"} {
		entries := map[string]uint64{"even": 1000, "odd": 1000}
		entries[seldom] = 10
		p := planned(t, c, planner.Options{Weights: counted(c, entries)})
		prove(t, p)
		for _, symbol := range []string{"even", "odd"} {
			if probed := sites(routine(t, p, symbol)) > 0; probed != (symbol == seldom) {
				t.Errorf("%s is entered seldom: %s makes an event: %v", seldom, symbol, probed)
			}
		}
	}
}

// TestCircleThroughAJump: what has made an event and jumped on is no caller any more, and the stack
// of those that have not grows with each round.
func TestCircleThroughAJump(t *testing.T) {
	p := planned(t, compile(t, assemble(
		[2]string{"outer", `call inner\nret`},
		[2]string{"inner", `call turns\nret`},
		[2]string{"turns", `test %edi, %edi\njne 1f\nret\n1: jmp outer`}), "-O1"),
		planner.Options{})
	prove(t, p)
	if sites(routine(t, p, "turns")) == 0 {
		t.Fatal("turns, which decides, makes no event: the test tests nothing")
	}
	for _, symbol := range []string{"outer", "inner"} {
		unprobe(p, routine(t, p, symbol))
	}
	expectFault(t, p, "more callers in a row may have made no event than are followed")
}

// TestLongRows: of 200 routines that each do no more than call the next, or jump to it, some make
// an event, but no more than have to.
func TestLongRows(t *testing.T) {
	const depth = 200
	for _, test := range []struct {
		leads, fault string
		most         int
	}{
		{`call %s\nret`, "more callers in a row may have made no event than are followed",
			plan.MaxProbeFreeCallers},
		{`call %[1]s\ncall %[1]s\nret`, "more callers in a row may have made no event than are " +
			"followed", plan.MaxProbeFreeCallers},
		{`jmp %s`, "more tail jumps in a row may come without an event than are followed",
			plan.MaxProbeFreeJumps},
	} {
		list := make([][2]string, depth+1)
		for i := range depth {
			list[i] = [2]string{fmt.Sprint("r", i), fmt.Sprintf(test.leads, fmt.Sprint("r", i+1))}
		}
		list[depth] = [2]string{fmt.Sprint("r", depth), `test %edi, %edi\nje 1f\nnop\n1: ret`}
		p := planned(t, compile(t, assemble(list...), "-O1"), planner.Options{})
		prove(t, p)
		var speaking *plan.Routine
		row := 0
		for i := depth - 1; i >= 0; i-- {
			r := routine(t, p, list[i][0])
			row++
			if p.Program.AddressTaken(r.Addr) {
				// by a number that looks like it: it makes an event anyway, be it behind the call
				if !silentlyLeads(p, r) {
					row = 0
				}
				continue
			}
			want := 0
			if row > test.most {
				speaking, row, want = r, 0, 1
			}
			if sites(r) != want {
				t.Fatalf("%s: %s has %d probes, want %d", test.leads, r.Symbol, sites(r), want)
			}
		}
		unprobe(p, speaking)
		expectFault(t, p, test.fault)
	}
}

// silentlyLeads reports whether the first call of a routine, or its jump, may come before its first
// event.
func silentlyLeads(p *plan.Plan, r *plan.Routine) bool {
	for _, b := range blocks(r, plan.Known) {
		return !p.Calls[r.Blocks[b].Hi].AfterEvent
	}
	return sites(r) == 0
}

// unprobe takes all probes off a routine.
func unprobe(p *plan.Plan, r *plan.Routine) {
	for b := range r.Blocks {
		withoutProbe(p, r, b)
	}
}

func expectFault(t *testing.T, p *plan.Plan, want string) {
	t.Helper()
	faults := verify.Plan(p)
	if !slices.ContainsFunc(faults,
		func(f verify.Fault) bool { return strings.Contains(f.String(), want) }) {
		t.Errorf("%v, want %q", faults, want)
	}
}
