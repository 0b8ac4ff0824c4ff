package recovery_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/x86"
)

// TestLeftOut checks that what cannot be traced is left out, with its reason.
func TestLeftOut(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2"))
	for _, test := range []struct{ symbol, reason string }{
		{"_start", ""},
		{"switcher", "writes rsp from a register or memory at"},
		{"exchanger", "writes rsp from a register or memory at"},
		{"restorer", ""},
		{"misplacer", "writes rsp from a register or memory at"},
		{"saver", "stores its own return address (may return twice)"},
		{"own", ""},
		{"thunk", "calls into its own middle at"},
		{"liar", "unwind rows contradict the stack pointer at"},
		{"keeper", "unwind rows contradict the stack pointer at"},
		{"pusher", ""},
		{"middle", "calls into the middle of a routine at"},
		{"entered", "called in its middle at"},
		{"farther", "jumps to unknown code at"},
		{"chooser", ""},
		{"applier", ""},
		{"waverer", "unresolved indirect jump at"},
		{"cloner", "starts threads in its middle at"},
		{"copier", "starts threads in its middle at"},
		{"splitter", "starts threads in its middle at"},
		{"budder", "starts threads in its middle at"},
		{"asker", ""},
		{"leaf", ""}, {"sibling", ""}, {"maybe", ""}, {"die", ""}, {"guarded", ""}, {"loops", ""},
		{"variable", ""}, {"fixed", ""},
		{"forever", ""}, {"indirect", ""}, {"twice", ""}, {"counter", ""}, {"main", ""},
	} {
		r := routine(t, p, test.symbol)
		if test.reason == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, test.reason) {
			t.Errorf("%s: left out: %q, want %q", test.symbol, r.LeftOut, test.reason)
		}
		if want := strings.TrimSuffix(test.reason, " at"); r.Cause != want {
			t.Errorf("%s: the cause is %q, not %q", test.symbol, r.Cause, want)
		}
	}
}

// Where the rows do not show a push and a pop, they are corrected, and there alone.
func TestRowsAreCorrected(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2")), "pusher")
	var got []int32
	for b := range r.Blocks {
		for _, q := range r.Blocks[b].Insns {
			got = append(got, r.CFA(q.Addr).Off)
		}
	}
	if want := []int32{8, 16, 16, 24, 32, 32, 32, 24, 16, 16, 24, 32, 24, 16, 24, 16, 16, 16,
		8}; !slices.Equal(got, want) {
		t.Errorf("the frame address is at rsp + %v, not %v", got, want)
	}
}

func TestEnds(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2"))
	for _, test := range []struct {
		symbol string
		end    cfg.End
		want   int
	}{
		{"leaf", cfg.Ret, 1}, {"leaf", cfg.Call, 0},
		{"sibling", cfg.Tail, 1}, {"sibling", cfg.Ret, 0},
		{"die", cfg.NoReturn, 1}, {"die", cfg.Ret, 0},
		{"dieLater", cfg.NoReturn, 1}, {"dieLater", cfg.Ret, 0},
		{"guarded", cfg.NoReturn, 1},
		{"forever", cfg.Ret, 0}, {"forever", cfg.Call, 1},
		{"indirect", cfg.CallInd, 1},
		{"chooser", cfg.TailInd, 1}, {"applier", cfg.TailInd, 1},
		{"fixed", cfg.Call, 2},
	} {
		if got := ends(routine(t, p, test.symbol))[test.end]; got != test.want {
			t.Errorf("%s has %d blocks that end by %d, want %d", test.symbol, got, test.end,
				test.want)
		}
	}
}

// Of code that is left out it is not known whether it returns: a return by way of a call into the
// thunk's own middle, say.
func TestReturnThunk(t *testing.T) {
	path := compileFile(t, "shapes/thunk.c", "-O2", "-mfunction-return=thunk",
		"-fcf-protection=none")
	p := recoverFile(t, path)
	if n := ends(routine(t, p, "main")); n[cfg.Call] != 1 || n[cfg.NoReturn] != 0 {
		t.Errorf("blocks of main by how they end: %v", n)
	}
	if r := routine(t, p, "f"); r.Cause != "jumps to a thunk" {
		t.Errorf("f is left out for %q", r.LeftOut)
	}
}

// What returns to a landing pad that looks at the exception does not return, though nobody knows
// the function.
func TestPadBehindCall(t *testing.T) {
	for _, compiler := range []string{"-O0", "-O1", "-O2"} {
		p := recoverFile(t, compileFile(t, "shapes/pads.cc", compiler, "-shared", "-fPIC"))
		if n := ends(routine(t, p, "never"))[cfg.NoReturn]; n == 0 {
			t.Errorf("%s: every call of never returns", compiler)
		}
		if r := routine(t, p, "returns"); len(r.Blocks[0].Succ) == 0 {
			t.Errorf("%s: the first block of returns has no successor: %+v", compiler, r.Blocks[0])
		}
	}
}

// A landing pad that begins with a trap is none that has a probe: nothing of it ever runs. Rust has
// them where a panic cannot get to. Several that begin alike jump to what they have in common, and
// that is looked at for whether a call returns to one of them.
func TestPadsThatTrapOrJump(t *testing.T) {
	for _, mark := range []string{"", "endbr64"} {
		path := compileFile(t, "shapes/pads-trap.cc",
			"-O1", "-no-pie", "-fno-pie", `-DMARK="`+mark+`"`)
		r := routine(t, recoverFile(t, path), "padded")
		if r.LeftOut != "" || len(r.Pads) != 1 {
			t.Errorf("%s: left out: %q, pads %v", mark, r.LeftOut, r.Pads)
		}
		if n := ends(r); n[cfg.Trap] != 1 || n[cfg.NoReturn] != 2 || n[cfg.Call] != 1 {
			t.Errorf("%s: blocks by how they end: %v", mark, n)
		}
	}
}

func TestSplitStack(t *testing.T) {
	p := recoverFile(t, compileFile(t, "shapes/split-stack.c", "-O2", "-fsplit-stack"))
	for _, symbol := range []string{"main", "f"} {
		if r := routine(t, p, symbol); r.Cause != "may be entered in its middle, on another "+
			"stack (-fsplit-stack)" {
			t.Errorf("%s is left out for %q", symbol, r.LeftOut)
		}
	}
}

// TestConditionalTail checks the jump out of a routine that a condition guards.
func TestConditionalTail(t *testing.T) {
	r := routine(t, recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2")), "maybe")
	for b := range r.Blocks {
		if bl := &r.Blocks[b]; bl.End == cfg.Jcc && bl.Succ[0] < 0 {
			if bl.Succ[1] < 0 || bl.Target == 0 {
				t.Errorf("block %d: successors %v, target %x", b, bl.Succ, bl.Target)
			}
			return
		}
	}
	t.Error("no conditional tail jump")
}

// TestDepth compares the depth at each call with what the compiler's unwind rows say, or with none
// where the frame has no fixed size.
func TestDepth(t *testing.T) {
	for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-fno-omit-frame-pointer"}} {
		p := recoverFile(t, compileFile(t, "shapes/shapes.c",
			append(flags, "-fno-ipa-stack-alignment")...))
		for _, r := range p.Routines {
			for b := range r.Blocks {
				bl := &r.Blocks[b]
				q := bl.Insns[len(bl.Insns)-1]
				if q.Kind != x86.Call && q.Kind != x86.CallInd || r.LeftOut != "" ||
					r.Symbol == "_start" {
					continue
				}
				switch {
				case r.Symbol == "variable", r.Symbol == "restorer":
					// see below; not written by a compiler
				case bl.Depth < 16 || bl.Depth%16 != 0:
					t.Errorf("%v: %s: the stack is not aligned at %x: depth %d", flags, r.Name,
						q.Addr, bl.Depth)
				}
				if cfa := r.CFA(q.Addr); cfa.Reg == 7 && int(cfa.Off) != bl.Depth {
					t.Errorf("%v: %s: depth %d at %x, row says %d", flags, r.Name, bl.Depth, q.Addr,
						cfa.Off)
				}
			}
		}
		if r := routine(t, p, "variable"); !slices.ContainsFunc(r.Blocks,
			func(b cfg.Block) bool { return b.End == cfg.Call && b.Depth < 0 }) {
			t.Errorf("%v: all depths of a routine with a variable array are known", flags)
		}
	}
}

func TestReferences(t *testing.T) {
	for _, flags := range [][]string{{"-O2", "-pie", "-fPIE"}, {"-O2", "-no-pie", "-fno-pie"},
		{"-O2", "-fPIE", "-pie", "-fno-plt"}} {
		p := recoverFile(t, compileFile(t, "shapes/shapes.c", flags...))
		for symbol, want := range map[string]bool{"sibling": true, "main": true, "leaf": false,
			"guarded": false, "dieLater": false} {
			if got := p.AddressTaken(routine(t, p, symbol).Addr); got != want {
				t.Errorf("%v: address of %s taken: %v, want %v", flags, symbol, got, want)
			}
		}
		for symbol, want := range map[string]bool{"saver": true, "own": false, "leaf": false} {
			if got := p.ReturnsTwice(routine(t, p, symbol).Addr); got != want {
				t.Errorf("%v: %s returns twice: %v, want %v", flags, symbol, got, want)
			}
		}
		var callees []string
		r := routine(t, p, "twice")
		for b := range r.Blocks {
			if to, name := p.Callee(r, b); to != nil {
				callees = append(callees, to.Name)
			} else if name != "" {
				callees = append(callees, name)
			}
		}
		slices.Sort(callees)
		if want := []string{"_setjmp", "leaf"}; !slices.Equal(callees, want) {
			t.Errorf("%v: twice calls %v, want %v", flags, callees, want)
		}
	}
}

// TestReturnsTwiceStripped checks that setjmp is known in a stripped static program.
func TestReturnsTwiceStripped(t *testing.T) {
	full := recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2", "-static"))
	stripped := recoverFile(t, compileFile(t, "shapes/shapes.c", "-O2", "-static", "-s"))
	for _, symbol := range []string{"__sigsetjmp", "_setjmp", "saver"} {
		if addr := routine(t, full, symbol).Addr; !full.ReturnsTwice(addr) ||
			!stripped.ReturnsTwice(addr) {
			t.Errorf("%s at %x returns twice: %v, stripped %v; want both", symbol, addr,
				full.ReturnsTwice(addr), stripped.ReturnsTwice(addr))
		}
	}
}

const throws = `
#include <cstdio>
#include <stdexcept>
struct Guard { int &n; ~Guard() { n++; std::puts("unwound"); } };
__attribute__((noinline)) int risky(int x) { if (x > 2) throw std::runtime_error("no"); return x; }
__attribute__((noinline)) int catches(int x) {
	int n = 0;
	try { Guard g{n}; n += risky(x); n += risky(x + 1); } catch (std::exception &e) { std::puts(e.what()); n--; }
	return n;
}
int main(int c, char **) { return catches(c); }
`

// TestPads checks that calls that may throw know where the exception lands.
func TestPads(t *testing.T) {
	for _, level := range []string{"-O0", "-O2"} {
		p := recoverFile(t, compile(t, throws, "-xc++", level))
		r := routine(t, p, "_Z7catchesi")
		if r.LeftOut != "" || r.Name != "catches" || len(r.Pads) == 0 {
			t.Fatalf("%s: %s: left out %q, pads %v", level, r.Name, r.LeftOut, r.Pads)
		}
		risky := routine(t, p, "_Z5riskyi")
		calls := 0
		for b := range r.Blocks {
			if to, _ := p.Callee(r, b); to == risky {
				calls++
				if pads := r.Blocks[b].Pads; len(pads) != 1 || !slices.Contains(r.Pads, pads[0]) {
					t.Errorf("%s: call in block %d lands at %v of %v", level, b, pads, r.Pads)
				}
			}
		}
		if calls != 2 {
			t.Errorf("%s: %d calls of risky, want 2", level, calls)
		}
	}
}

// TestColdPart checks that the part of a routine that the compiler moved away is part of it, in a
// stripped file too.
func TestColdPart(t *testing.T) {
	for _, strip := range []bool{false, true} {
		flags := []string{"-xc++", "-O2"}
		entry := routine(t, recoverFile(t, compile(t, throws, flags...)), "_Z7catchesi").Addr
		if strip {
			flags = append(flags, "-s")
		}
		p := recoverFile(t, compile(t, throws, flags...))
		r := p.At(entry)
		if r == nil || len(r.Ranges) != 2 || r.LeftOut != "" {
			t.Fatalf("stripped %v: no exact routine of two parts at %x", strip, entry)
		}
		for _, part := range r.Ranges {
			if p.Containing(part[0]) != r || p.Containing(part[1]-1) != r {
				t.Errorf("stripped %v: %x is not in its routine", strip, part)
			}
		}
	}
}

// TestSetjmpThroughRegister: clang -fno-plt loads the address of setjmp once for all its calls,
// which are indirect then.
func TestSetjmpThroughRegister(t *testing.T) {
	const source = `
		extern int _setjmp(void *), puts(const char *);
		int again(void *b) { int (*volatile f)(void *) = _setjmp; return f(b) + 1; }
		int other(int (*f)(void *), void *b) { return f(b) + 1; }
		int main(void) { static long b[64]; return again(b) + other((int (*)(void *))puts, b); }`
	for _, flags := range [][]string{{"-O2", "-fPIE", "-pie"}, {"-O2", "-fno-pie", "-no-pie"},
		{"-O2", "-fPIE", "-pie", "-fno-plt"}, {"-O2", "-static"}} {
		p := recoverFile(t, compile(t, source, append(flags, "-fno-builtin", "-w")...))
		for _, symbol := range []string{"again", "other"} { // a pointer of one may be the other's
			r, calls := routine(t, p, symbol), 0
			for b := range r.Blocks {
				if r.Blocks[b].End != cfg.CallInd {
					continue
				}
				calls++
				if !p.CallReturnsTwice(r, b) {
					t.Errorf("%v: the indirect call of %s returns twice: false, want true", flags,
						symbol)
				}
			}
			if calls == 0 {
				t.Errorf("%v: %s has no indirect call", flags, symbol)
			}
		}
	}
}

// A function that has several names goes by the one that programs call.
func TestNames(t *testing.T) {
	const source = `
		int __lib_open(int x) { return x + 1; }
		int open_it(int) __attribute__((alias("__lib_open")));
		int open_it_impl(int) __attribute__((alias("__lib_open")));
		int _open_it(int) __attribute__((alias("__lib_open")));
		int main(void) { return open_it(3); }`
	p := recoverFile(t, compile(t, source, "-O0"))
	routine(t, p, "open_it")
	routine(t, p, "main")
	for _, r := range p.Routines {
		if strings.Contains(r.Symbol, "open") && r.Symbol != "open_it" {
			t.Errorf("a routine is called %s", r.Symbol)
		}
	}
}
