package planner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/x86"
)

func TestPlansAreProven(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"},
		{"-O2", "-fcf-protection=full"}, {"-O2", "-fno-omit-frame-pointer"}, {"-O2", "-fno-plt"}} {
		for _, complete := range []bool{false, true} {
			t.Run(fmt.Sprint(flags, complete), func(t *testing.T) {
				prove(t, planned(t, compileFile(t, "kinds.c", flags...),
					planner.Options{Complete: complete}))
			})
		}
	}
}

// complete plans the kinds at -O2 with whatever probes they need.
func complete(t *testing.T) *plan.Plan {
	return planned(t, compileFile(t, "kinds.c", "-O2"), planner.Options{Complete: true})
}

// sites counts the probes of a routine.
func sites(r *plan.Routine) (n int) {
	for b := range r.Blocks {
		if r.Site(b) != nil {
			n++
		}
	}
	return n
}

// blocks are those of a routine that end with a call of that kind.
func blocks(r *plan.Routine, kind plan.Callee) (list []int) {
	for b := range r.Blocks {
		if k, _ := r.Callee(b); k == kind && calls(&r.Blocks[b]) {
			list = append(list, b)
		}
	}
	return list
}

// calls reports whether a block ends in a call instruction.
func calls(b *cfg.Block) bool {
	k := b.Insns[len(b.Insns)-1].Kind
	return k == x86.Call || k == x86.CallInd
}

// TestRule1ProbeFreeLeaves: a routine may end without an event if only traced code enters it, by
// direct calls.
func TestRule1ProbeFreeLeaves(t *testing.T) {
	p := complete(t)
	for _, c := range []struct {
		symbol    string
		probeFree bool
	}{{"leaf", true}, {"exported_leaf", true}, {"taken_leaf", false}, {"main", false}} {
		r := routine(t, p, c.symbol)
		if r.ProbeFree != c.probeFree {
			t.Errorf("%s: probe-free %v, want %v", c.symbol, r.ProbeFree, c.probeFree)
		}
		if c.symbol != "main" && (sites(r) == 0) != c.probeFree {
			t.Errorf("%s has %d probes", c.symbol, sites(r))
		}
	}
}

// TestRule1ExternalCallers: a leaf is not probe-free when one of its callers is not traced.
func TestRule1ExternalCallers(t *testing.T) {
	p := planned(t, compileFile(t, "kinds.c", "-O2"),
		planner.Options{Complete: true,
			Select: func(r *cfg.Routine) bool { return r.Symbol != "loops" }})
	if r := routine(t, p, "leaf"); r.ProbeFree || sites(r) == 0 {
		t.Errorf("leaf, which external code calls: probe-free %v, %d probes", r.ProbeFree, sites(r))
	}
}

// TestRule2CallersWithoutAnEventAreInTheChain: a call is followed to the caller's caller unless the
// caller has made an event.
func TestRule2CallersWithoutAnEventAreInTheChain(t *testing.T) {
	p := planned(t, compile(t, `
		int sink;
		__attribute__((noinline)) static int decides(int n) { return n > sink ? n : sink; }
		__attribute__((noinline)) static int quiet(int n) { return decides(n + 1) + 1; }
		int main(int argc, char **argv) { return argc > 3 ? quiet(argc) : quiet(argc + 1) * 2; }`, "-O1"), planner.Options{Complete: true})
	quiet, main := routine(t, p, "quiet"), routine(t, p, "main")
	for _, b := range blocks(quiet, plan.Known) {
		if c := p.Calls[quiet.Blocks[b].Hi]; c.AfterEvent != (quiet.Site(quiet.Entry) != nil) {
			t.Errorf("the call in quiet: %+v, its entry's site: %v", c, quiet.Site(quiet.Entry))
		}
	}
	for _, b := range blocks(main, plan.Known) {
		if c := p.Calls[main.Blocks[b].Hi]; !c.AfterEvent {
			t.Errorf("a call in main after its decision: %+v", c)
		}
	}
}

// TestRule3Circles: mutual recursion without a decision makes an event a round.
func TestRule3Circles(t *testing.T) {
	p := complete(t)
	if sites(routine(t, p, "even"))+sites(routine(t, p, "odd")) == 0 {
		t.Error("even and odd call one another without an event")
	}
}

// TestRule4UnknownFrames: a call from a frame of unknown size comes after an event.
func TestRule4UnknownFrames(t *testing.T) {
	r := routine(t, complete(t), "framed")
	unknown := 0
	for _, b := range blocks(r, plan.Known) {
		if r.Blocks[b].Depth < 0 {
			unknown++
			if r.Site(b) == nil && r.First(b) {
				t.Errorf("the call before %x may end without an event", r.Blocks[b].Hi)
			}
		}
	}
	if unknown == 0 {
		t.Error("no call in framed has a frame of unknown size: the test tests nothing")
	}
}

// TestRule5SetjmpHasTwoEvents: the call of setjmp is a witness, and so is what follows it.
func TestRule5SetjmpHasTwoEvents(t *testing.T) {
	r := routine(t, complete(t), "jumps")
	found := false
	for b := range r.Blocks {
		if r.ReturnsTwice(b) {
			found = true
			if r.Site(b) == nil || r.Site(r.Blocks[b].Succ[0]) == nil {
				t.Errorf("call %v, continuation %v", r.Site(b), r.Site(r.Blocks[b].Succ[0]))
			}
		}
	}
	if !found {
		t.Error("no call in jumps returns twice")
	}
}

// TestRule5LandingPadsHaveEvents on a cleanup and a handler.
func TestRule5LandingPadsHaveEvents(t *testing.T) {
	p := planned(t, compile(t, `
		volatile int closed;
		struct guard { ~guard() { ++closed; } };
		int thrower(int n);
		__attribute__((noipa)) int cleanup(int n) { guard g; return thrower(n); }
		int catcher(int n) { try { return cleanup(n); } catch (int e) { return e; } }
		__attribute__((noinline)) int thrower(int n) { if (n > 3) throw n; return n; }
		int main(int argc, char **) { return catcher(argc); }`, "-xc++", "-O1"), planner.Options{Complete: true})
	pads := 0
	for _, r := range p.Routines {
		if !r.Traced() {
			continue
		}
		for _, b := range r.Pads {
			pads++
			if r.Site(b) == nil {
				t.Errorf("the landing pad at %x of %s has no probe", r.Blocks[b].Lo, r.Name)
			}
		}
	}
	if pads < 2 {
		t.Errorf("%d landing pads, want those of the cleanup and of the handler", pads)
	}
}

// TestRule6CallsOfExternalCode: such a call is a witness; a function known to do nothing of the
// sort need not be.
func TestRule6CallsOfExternalCode(t *testing.T) {
	r := routine(t, complete(t), "outside")
	external := blocks(r, plan.External)
	if len(external) == 0 || len(blocks(r, plan.Harmless)) == 0 {
		t.Fatalf("%d calls of unknown functions, %d of harmless ones", len(external),
			len(blocks(r, plan.Harmless)))
	}
	for _, b := range external {
		if r.Site(b) == nil {
			t.Errorf("the call before %x has no probe", r.Blocks[b].Hi)
		}
	}
}

// TestRule6IndirectCalls: between two indirect calls, and after the last, there is an event.
func TestRule6IndirectCalls(t *testing.T) {
	p := complete(t)
	r := routine(t, p, "indirect")
	if n := len(blocks(r, plan.Unknown)); n != 2 {
		t.Fatalf("%d indirect calls, want 2", n)
	}
	prove(t, p)
}

// TestRule7TailJumps: whoever is jumped to by a routine that anybody may call returns to anybody,
// and must have a probe.
func TestRule7TailJumps(t *testing.T) {
	p := planned(t, compile(t, `
		int sink;
		__attribute__((noinline)) static int last(int n) { return n * 3 + 1; }
		__attribute__((noinline)) static int first(int n) { return last(n + 1); }
		int (*volatile pointer)(int) = first;
		int main(int argc, char **argv) { return pointer(argc) + last(argc) + 1; }`, "-O2"), planner.Options{Complete: true})
	r := routine(t, p, "first")
	if end := r.Blocks[len(r.Blocks)-1].End; end != cfg.Tail {
		t.Fatalf("first ends by %v, not by a jump", end)
	}
	prove(t, p)
	if sites(r) == 0 {
		t.Error("first, whose address is taken, has no probe")
	}
}

// TestRule8SwitchesCaptureTheirIndex at the bounds check, where the index is known.
func TestRule8SwitchesCaptureTheirIndex(t *testing.T) {
	r := routine(t, complete(t), "dense")
	for b := range r.Blocks {
		if r.Blocks[b].End != cfg.Table {
			continue
		}
		for c := range r.Blocks {
			if s := r.Site(c); s != nil && s.Capture != nil && s.Capture.Table == b {
				return
			}
		}
		t.Fatal("no probe captures the index of the switch in dense")
	}
	t.Fatal("dense has no jump table")
}

func TestSelect(t *testing.T) {
	p := planned(t, compileFile(t, "kinds.c", "-O2"),
		planner.Options{Complete: true,
			Select: func(r *cfg.Routine) bool { return r.Symbol == "saves" }})
	for _, r := range p.Routines {
		switch {
		case r.Traced() != (r.Symbol == "saves"):
			t.Errorf("%s: left out: %q", r.Name, r.LeftOut)
		case !r.Traced() && sites(r) > 0:
			t.Errorf("%s is not traced and has %d probes", r.Name, sites(r))
		}
	}
	if len(p.Sites) == 0 {
		t.Error("no probe for the routine that was chosen")
	}
	prove(t, p)
}

// TestLeftOutReasons: each routine that is not traced says why.
func TestLeftOutReasons(t *testing.T) {
	p := planned(t, compile(t, `
		#define NOINLINE __attribute__((noinline))
		NOINLINE int counts(long n) { asm volatile("1: loop 1b" : "+c"(n)); return n; }
		NOINLINE int fine(int n) { return n > 3 ? n : 4; }
		int main(int argc, char **argv) { return counts(argc) + fine(argc); }`, "-O1"), planner.Options{Select: func(r *cfg.Routine) bool { return r.Symbol != "fine" }})
	want := map[string]string{"counts": "no place for a probe", "fine": "not selected"}
	for _, r := range p.Routines {
		if reason, ok := want[r.Symbol]; ok && !strings.Contains(r.LeftOut, reason) {
			t.Errorf("%s is left out because %q, want %q", r.Symbol, r.LeftOut, reason)
		}
		if (r.Cause == "") != r.Traced() || strings.ContainsAny(r.Cause, "%0123456789") {
			t.Errorf("%s is left out because %q, the cause is %q", r.Symbol, r.LeftOut, r.Cause)
		}
		if c := p.Program.Routines[r.ID]; c.LeftOut != "" && r.LeftOut != c.LeftOut {
			t.Errorf("%s: %q became %q", r.Name, c.LeftOut, r.LeftOut)
		}
	}
}

// TestPlansOfTheSystem: they are proven, and with Complete routines that need dear probes often are
// not left out.
func TestPlansOfTheSystem(t *testing.T) {
	for _, path := range system(t) {
		p := recovered(t, path)
		traced := map[bool]int{}
		stepped := map[bool]float64{}
		for _, complete := range []bool{false, true} {
			pl := planned(t, p, planner.Options{Complete: complete})
			prove(t, pl)
			total := 0.0
			for _, r := range pl.Routines {
				switch {
				case r.Traced():
					traced[complete]++
				case complete && strings.Contains(r.LeftOut, "single-stepped"):
					t.Errorf("%s: %s is left out although everything is admitted: %s", path, r.Name,
						r.LeftOut)
				}
			}
			for i := range pl.Sites {
				total += pl.Sites[i].Expected
				if pl.Sites[i].Stepped {
					stepped[complete] += pl.Sites[i].Expected
				}
			}
			stepped[complete] /= total
		}
		if traced[false] > traced[true] {
			t.Errorf("%s: %d routines traced, %d with Complete", path, traced[false],
				traced[true])
		}
		if stepped[false] > 0.011 {
			t.Errorf("%s: %.2f %% of the hits are expected to be single-stepped", path,
				100*stepped[false])
		}
	}
}

// TestSitesAreSorted and each belongs to one block.
func TestSitesAreSorted(t *testing.T) {
	p := complete(t)
	if !slices.IsSortedFunc(p.Sites,
		func(a, b plan.Site) int { return int(int64(a.Addr) - int64(b.Addr)) }) {
		t.Error("sites are not in the order of their addresses")
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		if p.Routines[s.Routine].Site(s.Block) != s {
			t.Errorf("site %d at %x is not the one of its block", i, s.Addr)
		}
	}
}

func ExampleMake() {
	im, err := image.OpenFile("/usr/bin/true")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer im.Close()
	program, err := recovery.Recover(im)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := planner.Make(program,
		planner.Options{Select: func(r *cfg.Routine) bool { return r.Addr != im.Entry }})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range p.Routines {
		if r.Addr == im.Entry {
			fmt.Println("the entry point is traced:", r.Traced())
		}
	}
	// Output: the entry point is traced: false
}

// TestPersonalityIsCalled: a personality routine that unwind information alone names is called by
// the unwinder. It was taken for one that nobody calls.
func TestPersonalityIsCalled(t *testing.T) {
	const source = `
		__attribute__((noinline)) int own(int n) { return n > 3 ? n * 7 : n + 1; }
		__asm__(".type guarded,@function\nguarded: .cfi_startproc\n.cfi_personality 0x3,own\nret\n"
			".cfi_endproc\n.size guarded,.-guarded");
		int main(void) { return 0; }`
	p := planned(t, compile(t, source, "-O1", "-no-pie", "-fno-pie"), planner.Options{})
	if !routine(t, p, "own").ExternalCallers() {
		t.Error("nobody is taken to call it")
	}
}

func BenchmarkMake(b *testing.B) {
	for _, path := range system(b) {
		b.Run(path[strings.LastIndexByte(path, '/')+1:], func(b *testing.B) {
			p := recovered(b, path)
			for b.Loop() {
				if _, err := planner.Make(p, planner.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(p.Routines))*float64(b.N)/b.Elapsed().Seconds(),
				"routines/s")
		})
	}
}

// TestWeights: where frequencies are measured, the probe goes where it was seldom hit, whatever the
// estimate says.
func TestWeights(t *testing.T) {
	p := compile(t, `
		__attribute__((noinline)) static int choose(int n) {
			if (n == 3) __asm__ volatile("jmp 1f; 1:" : "+r"(n));
			else __asm__ volatile("jmp 1f; 1: nop" : "+r"(n));
			return n + 1;
		}
		int main(int n, char **v) { return choose(n) + 1; }`, "-O1")
	var choose *cfg.Routine
	for _, r := range p.Routines {
		if r.Symbol == "choose" {
			choose = r
		}
	}
	for _, usual := range []int{0, 1} { // of the two ways of the decision
		decision, ways := parting(choose)
		if decision < 0 {
			t.Fatal("no decision whose two ways meet")
		}
		w := &planner.Weights{Blocks: map[uint64]uint64{},
			Entries: map[uint64]uint64{choose.Addr: 1000}}
		for b := range choose.Blocks {
			w.Blocks[choose.Blocks[b].Lo] = 1000
		}
		for _, b := range ways[1-usual] {
			w.Blocks[choose.Blocks[b].Lo] = 3
		}
		made, err := planner.Make(p, planner.Options{Weights: w})
		if err != nil {
			t.Fatal(err)
		}
		r := made.Routines[choose.ID]
		probed := func(b int) bool { return r.Site(b) != nil }
		if !r.Traced() || probed(decision) || slices.ContainsFunc(ways[usual], probed) ||
			!slices.ContainsFunc(ways[1-usual], probed) {
			t.Errorf("way %d is the usual one: %s; the decision makes an event: %v, ways %v", usual,
				r.LeftOut, probed(decision), ways)
		}
	}
}

// parting finds a decision whose two ways meet, and the blocks of each.
func parting(r *cfg.Routine) (decision int, ways [2][]int) {
	for b := range r.Blocks {
		if r.Blocks[b].End != cfg.Jcc {
			continue
		}
		for i, n := range r.Blocks[b].Succ {
			ways[i] = nil
			for ; n >= 0 && len(r.Blocks[n].Succ) == 1 &&
				len(ways[i]) < len(r.Blocks); n = r.Blocks[n].Succ[0] {
				ways[i] = append(ways[i], n)
			}
			ways[i] = append(ways[i], n)
		}
		for i, n := range ways[0] {
			if k := slices.Index(ways[1], n); k > 0 && i > 0 && n >= 0 {
				return b, [2][]int{ways[0][:i], ways[1][:k]}
			}
		}
	}
	return -1, ways
}

// TestSignaturesAreNotProbed: code that calls through pointers reads how a function begins; what
// jumps over code that runs is no signature.
func TestSignaturesAreNotProbed(t *testing.T) {
	p := planned(t, compileFile(t, "signatures.c", "-O1"), planner.Options{Complete: true})
	prove(t, p)
	for _, symbol := range []string{"signed", "rotated", "plainly"} {
		r := routine(t, p, symbol)
		if sites(r) == 0 {
			t.Errorf("%s: no probe", symbol)
		}
		if symbol != "rotated" && r.Site(r.Entry) != nil {
			t.Errorf("%s: its signature is probed", symbol)
		}
	}
}
