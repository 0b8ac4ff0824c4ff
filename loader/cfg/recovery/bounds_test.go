package recovery_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// switchWays lists how many ways each switch of a routine has, in ascending order.
func switchWays(r *cfg.Routine) (ways []int) {
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.End == cfg.Table {
			ways = append(ways, len(bl.Succ))
		}
	}
	slices.Sort(ways)
	return ways
}

// A comparison says nothing of an index that is not what was compared: the table has eight entries
// in all of these.
func TestComparedIsNotTheIndex(t *testing.T) {
	covered := coverage{}
	for _, name := range []string{ // files in testdata/compared, which say why
		"changed-by-a-call", "changed-through-a-pointer", "changed-beneath-a-pointer",
		"changed-as-an-element", "read-twice", "another-half", "other-bits", "beneath-pushes",
		"beneath-flags",
	} {
		covered[name] = 0
		for _, flags := range [][]string{
			{"-O0"}, {"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-no-pie", "-fno-pie"},
		} {
			r := routine(t, recoverFile(t, compileFile(t, "compared/"+name+".c", flags...)), "f")
			if r.LeftOut != "" {
				continue
			}
			covered[name]++
			if ways := switchWays(r); len(ways) == 0 || ways[0] < 8 {
				t.Errorf("%s, %q: switches of %d ways, want 8", name, flags, ways)
			}
		}
	}
	covered.check(t, "compared.golden")
}

// A difference of a byte wraps around: a bound on what is subtracted from is none on it.
func TestDifferenceWrapsAround(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "switches/wraps.c", "-O1")), "wraps")
	if ways := switchWays(r); !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") &&
		!slices.Equal(ways, []int{4}) {
		t.Errorf("switches of %d ways, want 4; left out: %q", ways, r.LeftOut)
	}
}

// A table may have more entries than are read of one without a bound.
func TestLongTables(t *testing.T) {
	for bound, want := range map[string]int{"cmp $4999,%eax\\nja 2f\\n": 2, "": 0} {
		r := routine(t, recoverFile(t,
			compileFile(t, "switches/long-table.c", "-O1", `-DBOUND="`+bound+`"`)), "long_table")
		if ways := switchWays(r); want > 0 &&
			(r.LeftOut != "" || !slices.Equal(ways, []int{want})) ||
			want == 0 && !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("bound by %q: switches of %d ways; left out: %q", bound, ways, r.LeftOut)
		}
	}
}

// An address within a table may be another object's, less what an index or a pointer begins with.
func TestTablesNamedByOthers(t *testing.T) {
	builds := [][]string{
		{"-O1"}, {"-O2"}, {"-Os"}, {"-O2", "-no-pie", "-fno-pie"}, {"-Os", "-no-pie", "-fno-pie"},
	}
	covered := coverage{}
	for symbol, ways := range map[string]int{"f": 8, "from_three": 6, "labels": 4} {
		covered[symbol] = checkWhole(t, "switches/named-by-others.c", symbol, ways, builds)
	}
	covered.check(t, "named-by-others.golden")
}

// A table of no known length is read through entries that other code names, be they holes, as far
// as they lead into the routine: what lies behind may begin with an index of its own.
func TestNamedEntries(t *testing.T) {
	p := recoverFile(t, compileFile(t, "switches/named-entries.c", "-O1"))
	for _, symbol := range []string{"last", "middle", "hole", "own_last", "own_hole"} {
		r := routine(t, p, symbol)
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{5}) {
			t.Errorf("%s: switches of %d ways, want 5; left out: %q", symbol, ways, r.LeftOut)
		}
	}
}

// Clang gives each state of a machine a copy of the switch, on a number then, and reads the table
// by its distance from a base that other blocks have loaded.
func TestSwitchOnNumber(t *testing.T) {
	for _, flags := range [][]string{nil, {"-no-pie"}} {
		r := routine(t, recoverFile(t, compileFile(t, "switches/on-number.c", flags...)), "states")
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{3, 3, 3, 3}) {
			t.Errorf("%q: switches of %d ways, want 3 four times; left out: %q", flags, ways,
				r.LeftOut)
		}
	}
}

// The cold cases of a switch may be one part of it, of which no case is the beginning.
func TestColdPartOfTwoCases(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "switches/cold-two.c", "-O1")), "cold_two")
	if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{3}) {
		t.Errorf("switches of %d ways, want 3; left out: %q", ways, r.LeftOut)
	}
}

// The least index of a table may be negative, so that code names a place in its middle, or more
// than nought, where what lies before it is of no table.
func TestLeastIndex(t *testing.T) {
	builds := [][]string{{"-O1"}, {"-O2"}, {"-Os"}}
	covered := coverage{}
	for symbol, ways := range map[string]int{"from_minus_three": 7, "distances": 8} {
		covered[symbol] = checkWhole(t, "switches/least-index.c", symbol, ways, builds)
	}
	covered.check(t, "least-index.golden")
}

// Where it is not known where a table ends, or where it lies, leaves the routine out: its jump is
// none out of the routine.
func TestTablesOfUnknownExtent(t *testing.T) {
	for _, flags := range [][]string{{"-O1"}, {"-Os"}, {"-O1", "-no-pie", "-fno-pie"},
		{"-Os", "-no-pie", "-fno-pie"}} {
		p := recoverFile(t, compileFile(t, "switches/unknown-extent.c", flags...))
		for symbol, want := range map[string][]int{"distances": {8}, "from_sixty": {6, 8}} {
			r := routine(t, p, symbol)
			ways := switchWays(r)
			short := len(ways) < len(want) || slices.ContainsFunc(ways,
				func(n int) bool { return n < want[0] })
			if r.LeftOut == "" && short || r.LeftOut != "" && !strings.Contains(r.LeftOut,
				"unresolved indirect jump") && !strings.Contains(r.LeftOut, "address taken") {
				t.Errorf("%s, %q: switches of %d ways, want %d; left out: %q", symbol, flags, ways,
					want, r.LeftOut)
			}
		}
	}
}

// A place in memory that was compared holds something else when what may lie there has been
// written, or when another place has its name by then. Other code names the table's third entry, as
// if another object began there.
func TestComparedPlaceIsWritten(t *testing.T) {
	p := recoverFile(t, compileFile(t, "switches/place-written.c", "-O1"))
	for symbol, want := range map[string]int{
		"nothing": 2, "call": 5, "pointer": 5, "beneath": 5, "element": 5, "byte_element": 5,
		"masked_move": 5, "bit": 5, "wide": 5, "push": 5, "flags": 5,
	} {
		r := routine(t, p, symbol)
		if ways := switchWays(r); r.LeftOut != "" || !slices.Equal(ways, []int{want}) {
			t.Errorf("%s: switches of %d ways, want %d; left out: %q", symbol, ways, want,
				r.LeftOut)
		}
	}
}

// A table of distances from itself ends where code names another such, though by its own anchor the
// distances there lead into the routine, too. Where no other begins it may go on behind a hole.
func TestTableEndsWhereAnotherBegins(t *testing.T) {
	const (
		unbounded = `"mov %edi,%eax\n"`
		reread    = `"mov state(%rip),%eax\ncmp $MOST,%eax\nja 1f\nmov state(%rip),%eax\n"`
	)
	for _, c := range []struct {
		name, index, entries string
		ways                 []int // none: the routine is left out
	}{
		{"another", unbounded, `1b-tab, 2b-tab, 3b-tab\nnext: .long 5b-next, 4b-next`, []int{3}},
		{"another, behind the bound of what is read again", strings.Replace(reread, "MOST", "2", 1),
			`1b-tab, 2b-tab, 3b-tab\nnext: .long 4b-next, 5b-next`, []int{3}},
		{"an entry that code names, behind such a bound", strings.Replace(reread, "MOST", "1", 1),
			`1b-tab, 2b-tab, 3b-tab, 0x3000000\n.set next, tab+8`, []int{3}},
		{"a hole", unbounded, `1b-tab, 2b-tab, h-tab, 3b-tab\nnext: .long 5b-next, 4b-next`, nil},
	} {
		p := recoverFile(t, compile(t, beginEnd+`
#define JUMP "movslq (%rcx,%rax,4),%rax\nadd %rcx,%rax\njmp *%rax\n"
#define NOPS(n) ".rept " #n "\nnop\n.endr\n"
volatile int state;
__asm__(BEGIN(h) NOPS(12) "5: lea next(%rip),%rcx\nmov %edi,%eax\n" JUMP END(h)
	BEGIN(f) "sub $136,%rsp\n.cfi_adjust_cfa_offset 136\n" `+c.index+`
	"lea tab(%rip),%rcx\n" JUMP "1: inc %edx\n2: inc %edx\n3: inc %edx\n"
	"add $136,%rsp\n.cfi_adjust_cfa_offset -136\n" NOPS(16) "ret\n" END(f)
	BEGIN(g) "cmp $1,%edi\n4: ja 6f\nmov %edi,%eax\n6: lea next(%rip),%rcx\n" JUMP END(g)
	".section .rodata\n.p2align 2\ntab: .long `+c.entries+`\n.text\n");
int f(int), g(int), h(int);
int main(int n, char **v) { return f(n) + g(n) + h(n); }`, "-O1"))
		r := routine(t, p, "f")
		if ways := switchWays(r); !slices.Equal(ways, c.ways) ||
			(r.LeftOut == "") != (c.ways != nil) {
			t.Errorf("%s: switches of %d ways, want %d; left out: %q", c.name, ways, c.ways,
				r.LeftOut)
		}
	}
}
