package plan_test

import (
	"strings"
	"testing"

	"wpptrace/loader/plan"
)

// assemble wraps routines of assembly, each a name and its body, into a C program whose main calls
// the first.
func assemble(routines ...[2]string) string {
	var s strings.Builder
	s.WriteString("asm(\".text\\n\"\n")
	for _, r := range routines {
		s.WriteString("\".type " + r[0] + ", @function\\n" + r[0] + ": .cfi_startproc\\n" + r[1] + "\\n.cfi_endproc\\n.size " + r[0] + ", .-" + r[0] + "\\n\"\n")
	}
	s.WriteString(");\nint main(void) { asm volatile(\"call " + routines[0][0] + "\"); return 0; }\n")
	return s.String()
}

// TestCircleWithoutAPlaceForAProbe: it is broken by leaving routines out, and their callers are
// planned anew.
func TestCircleWithoutAPlaceForAProbe(t *testing.T) {
	const call = `.byte 0x48, 0xe8\n.long %s - . - 4\nret` // a prefix that no probe may sit on
	p := planned(t, compile(t, assemble(
		[2]string{"even", strings.ReplaceAll(call, "%s", "odd")},
		[2]string{"odd", strings.ReplaceAll(call, "%s", "even")}), "-O1"), plan.Options{})
	prove(t, p)
	for _, r := range p.Routines {
		if (r.Symbol == "even" || r.Symbol == "odd") && r.Observed() {
			t.Errorf("%s is observed", r.Symbol)
		}
	}
}

// TestCircleIsBrokenWhereItIsEnteredLeast, whatever its routines cost for one activation.
func TestCircleIsBrokenWhereItIsEnteredLeast(t *testing.T) {
	c := compile(t, assemble([2]string{"even", `call odd\nret`}, [2]string{"odd", `call even\nret`}), "-O1")
	for _, seldom := range []string{"even", "odd"} {
		entries := map[string]uint64{"even": 1000, "odd": 1000}
		entries[seldom] = 10
		p := planned(t, c, plan.Options{Weights: counted(c, entries)})
		prove(t, p)
		for _, symbol := range []string{"even", "odd"} {
			if speaks := sites(routine(t, p, symbol)) > 0; speaks != (symbol == seldom) {
				t.Errorf("%s is entered seldom: %s speaks: %v", seldom, symbol, speaks)
			}
		}
	}
}
