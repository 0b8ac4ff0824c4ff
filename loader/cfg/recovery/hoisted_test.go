package recovery_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
)

// A switch has one table: what else seems to be in its register comes by a way that is never gone,
// as behind a call of what ends the process.
func TestHoistedTables(t *testing.T) {
	p := recoverFile(t, compileFile(t, "hoisted/loops.c", "-O1"))
	for symbol, targets := range map[string]int{"plain": 3, "number": 3, "pointer": 3, "begins": 3,
		"no_table": 3, "two_tables": 3, "given": 0} {
		r := routine(t, p, symbol)
		if got := r.LeftOut == ""; got != (targets > 0) || !got && !strings.HasPrefix(r.LeftOut,
			"unresolved indirect jump") {
			t.Errorf("the switch of %s has %d targets; left out: %q", symbol, targets, r.LeftOut)
			continue
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table &&
				(len(bl.Succ) != targets || len(bl.Table.Targets) > 0 != (symbol != "two_tables")) {
				t.Errorf("the switch of %s, with %d targets, is said to be one through %v to %v",
					symbol, targets, bl.Table.Targets, bl.Succ)
			}
		}
	}
}

// What is guessed to be a switch's table is no other's: where its own is not seen, none is taken.
func TestGuessedTablesAreNoOthers(t *testing.T) {
	p := recoverFile(t, compileFile(t, "hoisted/two-switches.c", "-O1"))
	for symbol, leftOut := range map[string]string{"seen": "",
		"from_memory": "unresolved indirect jump", "unfollowed": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		if r.LeftOut != "" {
			continue
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table &&
				(len(bl.Succ) != 2 || len(bl.Table.Targets) != 3) {
				t.Errorf("%s: a switch of two targets is said to be one through %v to %v", symbol,
					bl.Table.Targets, bl.Succ)
			}
		}
	}
}

// Where the case is known before the jump to it, the jump leads where the table does; not so where
// something else may be in its register.
func TestCaseIsKnownEarlier(t *testing.T) {
	p := recoverFile(t, compileFile(t, "hoisted/earlier.c", "-O1"))
	for symbol, leftOut := range map[string]string{"once": "",
		"changed": "unresolved indirect jump", "stored": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table &&
				(len(bl.Succ) != 3 || bl.Table.Targets != nil || bl.Table.Check >= 0) {
				t.Errorf("%s: the jump leads to %v by %+v, not to three cases by what is known "+
					"no more", symbol, bl.Succ, bl.Table)
			}
		}
	}
}

// The same with a table of addresses, as files have that are not position independent.
func TestCaseIsKnownEarlierByAddress(t *testing.T) {
	r := routine(t, recoverFile(t,
		compileFile(t, "hoisted/earlier.c", "-DADDRESSES", "-O1", "-no-pie", "-fno-pie")), "once")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Errorf("%d switches are known, and it is left out: %q", n, r.LeftOut)
	}
}

// Tables are found by their distance from the global offset table, and end where the next is that
// is named so.
func TestTablesByDistance(t *testing.T) {
	p := recoverFile(t, compileFile(t, "hoisted/distant.c", "-O1"))
	for symbol, leftOut := range map[string]string{"known": "", "given": "unresolved indirect jump",
		"itself": "unresolved indirect jump"} {
		r := routine(t, p, symbol)
		if leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, leftOut) {
			t.Errorf("%s: left out: %q, want %q", symbol, r.LeftOut, leftOut)
		}
		if n := ends(r)[cfg.Table]; leftOut == "" && n != 2 {
			t.Errorf("%s: %d switches, want 2", symbol, n)
		}
		for b := range r.Blocks {
			if bl := &r.Blocks[b]; bl.End == cfg.Table && len(bl.Succ) != 3 {
				t.Errorf("%s: a switch of three cases leads to %v", symbol, bl.Succ)
			}
		}
	}
}

// A case that is known earlier by a table of labels that others know, too, leaves no jump sure to
// leave the routine: it may go to one of the labels.
func TestCaseIsKnownEarlierByLabels(t *testing.T) {
	for _, flags := range [][]string{{"-O1"}, {"-O1", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compileFile(t, "hoisted/labelled.c", flags...)),
			"labelled"); !strings.HasPrefix(r.LeftOut, "unresolved indirect jump") {
			t.Errorf("%v: left out: %q", flags, r.LeftOut)
		}
	}
}

// A label that lies in the frame may be changed through a pointer between where it is known and the
// jump: to any that the routine has.
func TestLabelChangedThroughPointer(t *testing.T) {
	builds := [][]string{{"-O0"}, {"-O2"}, {"-O0", "-no-pie", "-fno-pie"}}
	coverage{
		"hooked": checkExact(t, "hoisted/hooked.c", "hooked", 3, builds),
	}.check(t, "hooked.golden")
}

// Where 40 ways part before a switch that each add to its table's address or not, not all sums are
// made: it is guessed to have the table that nothing is added to.
func TestSumsOfManyWays(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "hoisted/summed.c", "-O1")), "summed")
	if n := ends(r)[cfg.Table]; r.LeftOut != "" || n != 1 {
		t.Errorf("%d switches, want 1; left out: %q", n, r.LeftOut)
	}
}

// What source says that no variant is, compilers leave in ways that lead past the addresses of
// tables, and out of the routine.
func TestVisitedVariants(t *testing.T) {
	covered := coverage{"all": 0}
	for _, flags := range [][]string{{"-O2"}, {"-O3"}, {"-O2", "-no-pie", "-fno-pie"}} {
		flags = append(flags, "-std=c++20")
		program := recoverFile(t, compileFile(t, "hoisted/visited.cc", flags...))
		isWhole := true
		for _, r := range program.Routines {
			if r.LeftOut != "" && r.Symbol != "_start" && r.LeftOut != "no unwind information" {
				t.Logf("%v: %s is left out: %s", flags, r.Name, r.LeftOut)
				isWhole = false
			}
		}
		if isWhole {
			covered["all"]++
		}
	}
	covered.check(t, "visited.golden")
}

// A switch in a loop all of whose exceptions come out of its cases, and lead back to it.
func TestSwitchInTry(t *testing.T) {
	covered := coverage{"loop": 0, "switch": 0}
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
		r := routine(t, recoverFile(t, compileFile(t, "hoisted/try.cc", level)), "_Z4loopi")
		if r.LeftOut != "" {
			t.Logf("%s: the loop is left out: %s", level, r.LeftOut)
			continue
		}
		covered["loop"]++
		switch n := ends(r); {
		case n[cfg.TailInd] > 0:
			t.Errorf("%s: the switch is taken for a jump out of the routine", level)
		case n[cfg.Table] == 1:
			covered["switch"]++
		}
	}
	covered.check(t, "try.golden")
}

// Interpreters with hundreds of computed gotos keep the table in a slot of a frame in which they
// take addresses, too, and have it in a register again after each call: what is found of the slot
// for one jump serves the others.
func TestTableOfManyJumps(t *testing.T) {
	defer recovery.LimitSteps(300_000)()
	builds := [][]string{{"-O1", "-fno-gcse"}}
	coverage{
		"f": checkExact(t, "hoisted/many-jumps.c", "f", 256, builds),
	}.check(t, "many-jumps.golden")
}

// A label in the frame may have been changed before a call returns for the second time, through a
// pointer that another routine has been given.
func TestLabelAcrossSecondReturn(t *testing.T) {
	for _, flags := range [][]string{{"-O1"}, {"-O2"}, {"-O2", "-no-pie", "-fno-pie"}} {
		if r := routine(t, recoverFile(t, compileFile(t, "hoisted/second-return.c", flags...)),
			"again"); r.LeftOut == "" && !slices.Contains(switchWays(r), 3) {
			t.Errorf("%v: jumps of %d ways, want one of 3", flags, switchWays(r))
		}
	}
}
