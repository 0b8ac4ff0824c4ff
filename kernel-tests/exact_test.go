package kerneltests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/truth"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/loader/uprobe"
)

// What a program's records must cover of its own instructions, by default and with --complete.
const (
	enough         = 0.95
	enoughComplete = 0.99
)

// most is how many steps a truth may take: some seconds' worth.
const (
	most     = 200_000
	mostSoak = 20_000_000
)

// untraceable lists the programs that execute less than enough outside of routines that cannot be
// traced by their nature.
var untraceable = map[string]struct {
	least float64 // share that is traced all the same
	why   string
}{
	"nested_functions": {0.2, "its nested functions jump to a place that they do not know"},
	"builtin_jump": {0.5, "receive is entered in its middle, at an address taken; climb " +
		"jumps there"},
	"hidden_ways": {0.95, "its ways into others are out of sight by what cannot be traced"},
	"labels":      {0.97, "it keeps labels in memory"},
	"raised": {0.98, "stripped, what two of its routines jump to has neither a symbol " +
		"nor unwind information"},
	"stored_labels":   {0.2, "two of its routines jump to labels that they have in memory"},
	"dies_in_handler": {0.6, "its handlers hold a breakpoint"},
	"unseen_handlers": {0.8, "its handlers hold a breakpoint"},
	"switcher": {0.5, "its switching routine replaces the stack pointer; what it " +
		"switches between resumes after each switch"},
}

// limits lists the programs that come out wrong, and are marked so, for a reason that no tracer of
// this kind can help. The test demands that they do: a limit that is overcome has to go from here.
var limits = map[string]string{
	"fixup_skip": "its handler changes where the interrupted code goes on; sigreturn cannot be " +
		"probed",
}

// once are cases that came out wrong once.
var once = []zoo.Case{
	// a jump out of a handler took with it the path that the handler had interrupted
	{Program: zoo.Named("fault"), Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O3"}},
	// the path after the last event had begun and was not marked as cut off
	{Program: zoo.Named("fault"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O3", PIE: true, Extra: "-fno-plt"}},
	// a stack that is left by a tail jump was said to have run on
	{Program: zoo.Named("coroutines"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O0", PIE: true}},
	// a nested function's jump into its parent was not seen coming
	{Program: zoo.Named("nested_functions"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O0", PIE: true}},
	// a handler that a handler raises by a tail jump came before the jumper's last paths
	{Program: zoo.Named("nested_handlers"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true}},
	// an exception out of a call through the global offset table, which the library caught, was
	// taken to have come later
	{Program: zoo.Named("caught"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O0", PIE: true, Extra: "-fno-plt"}},
	// an interpreter's jumps to its operations were taken for loops within loops, and for too dear
	{Program: zoo.Named("computed_goto"),
		Flavour: zoo.Flavour{Compiler: "clang", Opt: "-O1", PIE: true}},
	// a callback that a handler had mended a fault of was taken to go on after the next
	{Program: zoo.Named("callback_faults"),
		Flavour: zoo.Flavour{Compiler: "clang", Opt: "-O3", PIE: true,
			Extra: "-fno-omit-frame-pointer"}},
	// a cold part was taken for the entry, and the rest ran unseen
	{Program: zoo.Named("cold_entry"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true, Stripped: true}},
	// what code behind a jump that is not resolved calls had no event
	{Program: zoo.Named("labels"), Flavour: zoo.Flavour{Compiler: "clang", Opt: "-O1", PIE: true}},
	// a handler that interrupts a routine which is left out came before what that calls next
	{Program: zoo.Named("unseen_faults"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true}},
	// a landing pad behind a call that never returns was taken for where it returns to
	{Program: zoo.Named("unwinding_exit"),
		Flavour: zoo.Flavour{Compiler: "clang", Opt: "-O2", PIE: true}},
	// what a routine that is left out enters amid data, or in the middle, had no event; a jump to
	// setjmp was not known to return twice
	{Program: zoo.Named("hidden_ways"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true}},
	// a thread that ended before its first event was missing
	{Program: zoo.Named("thread_ends"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", PIE: true}},
	// signals that a function reached through the global offset table raises
	{Program: zoo.Named("signals"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O0", PIE: true, Extra: "-fno-plt"}},
}

// zooCases are a flavour of each program, which together meet all pairs of the matrix; or all of
// it.
func zooCases() []zoo.Case {
	if !matrix() {
		return append(zoo.Cases(), once...)
	}
	cases := []zoo.Case{{Program: zoo.Named("exceptions"),
		Flavour: zoo.Flavour{Compiler: "gcc", Opt: "-O2", Static: true, Sorting: true}}}
	for _, f := range zoo.Flavours() {
		for _, p := range zoo.Programs() {
			cases = append(cases, zoo.Case{Program: p, Flavour: f})
		}
	}
	return cases
}

func targetOf(c zoo.Case, path, dir string) exact.Target {
	t := exact.Target{Path: path, Args: c.Program.Args, Env: zoo.Env(), Dir: dir,
		FixedAddresses: c.Flavour.Static}
	if c.Flavour.Shared {
		t.Libraries = []string{c.Flavour.Library(c.Program)}
	}
	return t
}

func expectation(c zoo.Case) exact.Expect {
	p := c.Program
	// A fault comes at any instruction, as a timer does; the record has its handler at the last
	// thing that was known before it.
	const cuts = zoo.Fault | zoo.Signals | zoo.Jumps | zoo.Exceptions | zoo.KillsThreads |
		zoo.Coroutine
	apart := p.Tags&(zoo.Timer|zoo.Fault) != 0
	// A library call through the global offset table is not announced: which of two such calls a
	// signal interrupted is not known.
	apart = apart || p.Has(zoo.Signals) && c.Flavour.Extra == "-fno-plt"
	x := exact.Expect{Apart: apart, Execs: p.Has(zoo.Execs), Cut: p.Tags&cuts != 0,
		Static: c.Flavour.Static, Limit: most}
	if matrix() {
		x.Limit = mostSoak
	}
	return x
}

func TestZooIsExact(t *testing.T) {
	builder, cases := programs(t, zooCases())
	table := newTable(t)
	var outputs outputs
	for _, c := range cases {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path := build(t, builder, c)
			target := targetOf(c, path, t.TempDir())
			outputs.isThatOf(t, c.Program, target)
			if c.Program.Has(zoo.Longest) && !matrix() {
				t.Skip("executes more than a truth may: runs with WPPTRACE_MATRIX=1")
			}
			if soak() && c.Program.Soak != nil {
				target.Args = c.Program.Soak
			}
			if why, ok := limits[c.Program.Name]; ok {
				proveLimit(t, target, expectation(c), why)
				return
			}
			least, leastComplete := enough, enoughComplete
			if u, ok := untraceable[c.Program.Name]; ok {
				least, leastComplete = u.least, u.least
			}
			prove(t, table, target, expectation(c), least, leastComplete)
		})
	}
}

// outputs has what programs of the zoo write, by name, to hold against others of their flavours.
type outputs struct{ sync.Map }

// isThatOf fails the test unless a program ends as documented, and writes a checksum: the same in
// all its flavours, for nothing that it does is undefined.
func (o *outputs) isThatOf(t *testing.T, p zoo.Program, target exact.Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	ran, err := target.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if ran.Exit != p.Exit {
		t.Errorf("exit status %d, documented as %d", ran.Exit, p.Exit)
	}
	out := string(ran.Stdout) + string(ran.Stderr)
	isChecksum := len(out) == 9 && out[8] == '\n' && strings.Trim(out[:8], "0123456789abcdef") == ""
	if first, known := o.LoadOrStore(p.Name, out); p.Name != "empty" && !isChecksum ||
		known && first != out {
		t.Errorf("it writes %q, which is no checksum, or not the one of another flavour, %q", out,
			first)
	}
}

// aside names routines of real programs that are not the same in every run.
var aside = map[string][]string{
	"bash": {"fmtumax"}, // writes process numbers, digit by digit
}

// alikeRun is a real program that does the same in every run: python3 hashes addresses.
func alikeRun(real zoo.Real, path string) exact.Target {
	return exact.Target{Path: path, Args: real.Args, Env: append(zoo.Env(), "PYTHONHASHSEED=0"),
		Stdin: []byte(real.Stdin), FixedAddresses: true}
}

// Programs as the distribution ships them, from their first instruction to their last.
func TestRealProgramsAreExact(t *testing.T) {
	table := newTable(t)
	for _, real := range zoo.Reals() {
		t.Run(real.Name, func(t *testing.T) {
			t.Parallel()
			if real.Long && !soak() {
				t.Skip("executes millions of instructions: runs with WPPTRACE_SOAK=1")
			}
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			target := alikeRun(real, path)
			target.Dir = t.TempDir()
			x := exact.Expect{Limit: most, Aside: aside[real.Name]}
			if soak() {
				x.Limit = mostSoak
			}
			prove(t, table, target, x, enough, enoughComplete)
		})
	}
}

// prove fails the test unless the records of a target are exact and cover enough.
func prove(t *testing.T, table *table, target exact.Target, x exact.Expect, least,
	leastComplete float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	p, err := proof(ctx, target, x)
	if errors.Is(err, truth.ErrLimit) && !matrix() {
		t.Skipf("%v: runs with WPPTRACE_MATRIX=1", err)
	}
	if errors.Is(err, exact.ErrRefused) && uprobe.Detect() == uprobe.Events &&
		strings.Contains(err.Error(), "select routines of it with -F") {
		t.Skip(err)
	}
	if p != nil {
		table.add(t.Name(), p)
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.Default.Share() < least {
		t.Errorf("%.2f %% of its own instructions are traced, not %.0f %%:\n%s",
			100*p.Default.Share(), 100*least, missed(p.Default))
	}
	if p.Complete.Share() < leastComplete {
		t.Errorf("%.2f %% of its own instructions are traced with --complete, not %.0f %%:\n%s",
			100*p.Complete.Share(), 100*leastComplete, missed(p.Complete))
	}
}

// proveLimit fails the test unless the target runs as ever and its record differs.
func proveLimit(t *testing.T, target exact.Target, x exact.Expect, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	_, err := proof(ctx, target, x)
	if !errors.Is(err, exact.ErrInexact) || errors.Is(err, exact.ErrDisturbed) {
		t.Fatalf("the only difference expected is in the record, because %s; got: %v", why, err)
	}
}

// patience bounds one case: a program that hangs fails alone.
func patience() time.Duration {
	if matrix() || built() != "" { // in an emulated machine all takes 10 to 50 times longer
		return time.Hour
	}
	return 2 * time.Minute
}

// A table collects what the cases of a test cover and logs it when they have ended.
type table struct {
	mu   sync.Mutex
	rows []string
}

func newTable(t *testing.T) *table {
	table := &table{}
	t.Cleanup(func() {
		slices.Sort(table.rows)
		t.Logf("%-72s %12s %9s %9s\n%s", "CASE", "INSTRUCTIONS", "DEFAULT", "COMPLETE",
			strings.Join(table.rows, "\n"))
	})
	return table
}

func (t *table) add(name string, p *exact.Proof) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, fmt.Sprintf("%-72s %12d %8.2f%% %8.2f%%", name, p.Truth.Total(),
		100*p.Default.Share(), 100*p.Complete.Share()))
}

// missed lists the routines that ran untraced, with the reasons.
func missed(c truth.Coverage) string {
	var b strings.Builder
	for _, m := range c.Missed {
		fmt.Fprintf(&b, "  %d of %d in %s: %s\n", m.Insns, c.Known, m.Routine.Name,
			m.Routine.Reason)
	}
	return b.String()
}
