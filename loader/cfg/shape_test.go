package cfg_test

import (
	"slices"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/x86"
)

const shapes = `
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile int sink;
__attribute__((noinline,noclone)) int leaf(int x) { sink++; return x * 3 + 1; }
__attribute__((noinline,noclone)) int sibling(int x) { return leaf(x + 1); }
__attribute__((noinline,noclone)) static void die(int x) { printf("%d\n", x); exit(x); }
__attribute__((noinline,noclone)) static void dieLater(int x) { puts("later"); die(x + 1); }
__attribute__((noinline,noclone)) int guarded(int x) { if (x == 77) dieLater(x); return x * 2 + leaf(x); }
__attribute__((noinline,noclone)) int loops(int n) { int s = 0; for (int i = 0; i < n; i++) for (int j = 0; j < i; j++) s += leaf(j); return s; }
__attribute__((noinline,noclone)) int variable(int n) { char b[n]; memset(b, 1, n); return leaf(b[n / 2]) + leaf(b[0]); }
__attribute__((noinline,noclone)) int fixed(int n) { char b[40]; memset(b, n, 40); return leaf(b[n & 31]) + leaf(b[0]); }
__attribute__((noinline,noclone)) void forever(int n) { for (;;) leaf(n++); }
__attribute__((noinline,noclone)) int indirect(int (*f)(int), int x) { return f(x) + 1; }
__attribute__((noinline,noclone)) void *own(void) { return __builtin_return_address(0); }
jmp_buf env;
__attribute__((noinline,noclone)) int twice(void) { if (setjmp(env)) return 1; return leaf(2); }

int maybe(int);
__asm__(".globl maybe\n.type maybe,@function\nmaybe:\n.cfi_startproc\n"
	"test %edi,%edi\njne leaf\nxor %eax,%eax\nret\n.cfi_endproc\n.size maybe,.-maybe\n");
void switcher(void *);
__asm__(".globl switcher\n.type switcher,@function\nswitcher:\n.cfi_startproc\n"
	"mov %rsp,8(%rdi)\nmov (%rdi),%rsp\nret\n.cfi_endproc\n.size switcher,.-switcher\n");
void exchanger(void *);
__asm__(".globl exchanger\n.type exchanger,@function\nexchanger:\n.cfi_startproc\n"
	"xchg %rsp,(%rdi)\nret\n.cfi_endproc\n.size exchanger,.-exchanger\n");
int saver(void *);
__asm__(".globl saver\n.type saver,@function\nsaver:\n.cfi_startproc\n"
	"mov (%rsp),%rdx\nmov %rdx,56(%rdi)\nxor %eax,%eax\nret\n.cfi_endproc\n.size saver,.-saver\n");
void thunk(void);
__asm__(".globl thunk\n.type thunk,@function\nthunk:\n.cfi_startproc\n"
	"call 1f\n1: add $8,%rsp\nret\n.cfi_endproc\n.size thunk,.-thunk\n");
void liar(void);
__asm__(".globl liar\n.type liar,@function\nliar:\n.cfi_startproc\n"
	"push %rbx\npush %rbx\n.cfi_adjust_cfa_offset 8\npop %rbx\npop %rbx\nret\n.cfi_endproc\n.size liar,.-liar\n");
int pusher(int);
__asm__(".globl pusher\n.type pusher,@function\npusher:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %edi,%eax\npush %rbx\npush %rcx\nxor %ecx,%ecx\ncpuid\npop %rcx\npop %rbx\nadd %edi,%eax\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\npushf\npopf\npop %rbp\n.cfi_adjust_cfa_offset -8\npush %rcx\npop %rcx\n1: dec %edi\njns 1b\n"
	"pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size pusher,.-pusher\n");
void keeper(void);
__asm__(".globl keeper\n.type keeper,@function\nkeeper:\n.cfi_startproc\n"
	"push %rbx\ncall leaf\npop %rbx\nret\n.cfi_endproc\n.size keeper,.-keeper\n");
void counter(void);
__asm__(".globl counter\n.type counter,@function\ncounter:\n.cfi_startproc\n"
	"mov $5,%ecx\n1: nop\nloop 1b\nret\n.cfi_endproc\n.size counter,.-counter\n");
void middle(void);
__asm__(".globl middle\n.type middle,@function\nmiddle:\n.cfi_startproc\n"
	"call entered+1\nret\n.cfi_endproc\n.size middle,.-middle\n");
void entered(void);
__asm__(".globl entered\n.type entered,@function\nentered:\n.cfi_startproc\n"
	"nop\nret\n.cfi_endproc\n.size entered,.-entered\n");
void farther(void);
__asm__(".globl farther\n.type farther,@function\nfarther:\n.cfi_startproc\n"
	"jmp uncharted\n.cfi_endproc\n.size farther,.-farther\nuncharted: ret\n");

void restorer(void);
__asm__(".globl restorer\n.type restorer,@function\nrestorer:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rsp,%rbx\ntest %edi,%edi\nje 1f\ncall leaf\n1: push %rdi\n.cfi_adjust_cfa_offset 8\ncall leaf\n"
	"mov %rbx,%rsp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size restorer,.-restorer\n");
void misplacer(void);
__asm__(".globl misplacer\n.type misplacer,@function\nmisplacer:\n.cfi_startproc\n"
	"push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rsp,%rbx\ntest %edi,%edi\nje 1f\nmov %rsi,%rbx\n1: push %rdi\n.cfi_adjust_cfa_offset 8\ncall leaf\n"
	"mov %rbx,%rsp\n.cfi_adjust_cfa_offset -8\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size misplacer,.-misplacer\n");

int chooser(int);
__asm__(".globl chooser\n.type chooser,@function\nchooser:\n.cfi_startproc\n"
	"lea counter(%rip),%rax\nlea sibling(%rip),%rdx\ntest %edi,%edi\ncmove %rdx,%rax\njmp *%rax\n.cfi_endproc\n.size chooser,.-chooser\n");
int waverer(int);
__asm__(".globl waverer\n.type waverer,@function\nwaverer:\n.cfi_startproc\n"
	"lea counter(%rip),%rax\nlea 1f(%rip),%rdx\ntest %edi,%edi\ncmove %rdx,%rax\njmp *%rax\n1: ret\n.cfi_endproc\n.size waverer,.-waverer\n");
int applier(void *, int);
__asm__(".globl applier\n.type applier,@function\napplier:\n.cfi_startproc\n"
	"push %rdi\n.cfi_adjust_cfa_offset 8\nmov %esi,%edi\ncall leaf\n1: mov %eax,%esi\npop %rdi\n.cfi_adjust_cfa_offset -8\nmov (%rdi),%rax\njmp *%rax\n.cfi_endproc\n"
	".size applier,.-applier\n.data\n.quad 1b\n.text\n");
void cloner(void);
__asm__(".globl cloner\n.type cloner,@function\ncloner:\n.cfi_startproc\n"
	"mov $56,%eax\ntest %edi,%edi\nje 1f\nmov $435,%eax\n1: syscall\nret\n.cfi_endproc\n.size cloner,.-cloner\n");
void copier(int, int);
__asm__(".globl copier\n.type copier,@function\ncopier:\n.cfi_startproc\n"
	"mov %esi,%eax\ntest %edi,%edi\nje 1f\nmov $56,%eax\n1: syscall\nret\n.cfi_endproc\n.size copier,.-copier\n");
void splitter(void);
__asm__(".globl splitter\n.type splitter,@function\nsplitter:\n.cfi_startproc\n"
	"xor %eax,%eax\nmov $56,%al\nsyscall\nret\n.cfi_endproc\n.size splitter,.-splitter\n");
void budder(void);
__asm__(".globl budder\n.type budder,@function\nbudder:\n.cfi_startproc\n"
	"push $56\n.cfi_adjust_cfa_offset 8\npop %rax\n.cfi_adjust_cfa_offset -8\nsyscall\nret\n.cfi_endproc\n.size budder,.-budder\n");
void asker(void);
__asm__(".globl asker\n.type asker,@function\nasker:\n.cfi_startproc\n"
	"mov $39,%eax\nsyscall\nret\n.cfi_endproc\n.size asker,.-asker\n");

int (*volatile pointer)(int) = sibling;
int main(int c, char **v) {
	if (c > 100) { switcher(v); exchanger(v); saver(v); thunk(); liar(); pusher(c); keeper(); counter(); middle(); entered(); restorer(); misplacer(); chooser(c); waverer(c); applier(v, c); cloner(); copier(c, c); splitter(); budder(); asker(); farther(); forever(1); }
	return maybe(c) + guarded(c) + loops(c) + variable(c) + fixed(c) + indirect(pointer, c) + twice() + (own() != 0);
}
`

// TestLeftOut checks that what cannot be traced is left out, with its reason.
func TestLeftOut(t *testing.T) {
	p := recoverFile(t, compile(t, shapes, "-O2"))
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
		{"leaf", ""}, {"sibling", ""}, {"maybe", ""}, {"die", ""}, {"guarded", ""}, {"loops", ""}, {"variable", ""}, {"fixed", ""},
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

// Where the rows do not tell of a push and a pop, they are corrected, and there alone.
func TestRowsAreCorrected(t *testing.T) {
	r := routine(t, recoverFile(t, compile(t, shapes, "-O2")), "pusher")
	var got []int32
	for b := range r.Blocks {
		for _, q := range r.Blocks[b].Insns {
			got = append(got, r.CFA(q.Addr).Off)
		}
	}
	if want := []int32{8, 16, 16, 24, 32, 32, 32, 24, 16, 16, 24, 32, 24, 16, 24, 16, 16, 16, 8}; !slices.Equal(got, want) {
		t.Errorf("the frame address is at rsp + %v, not %v", got, want)
	}
}

func TestEnds(t *testing.T) {
	p := recoverFile(t, compile(t, shapes, "-O2"))
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
			t.Errorf("%s has %d blocks that end by %d, want %d", test.symbol, got, test.end, test.want)
		}
	}
}

// Of code that is left out it is not known whether it returns: a return by way of a call into the
// thunk's own middle, say.
func TestReturnThunk(t *testing.T) {
	const source = `
		__attribute__((noinline)) static int f(int k, int x) { if (k & 1) x += 3; return x * k + 1; }
		int main() { int s = 0; for (int i = 0; i < 20; i++) s = s * 3 + f(i, s & 63); return s; }`
	p := recoverFile(t, compile(t, source, "-O2", "-mfunction-return=thunk", "-fcf-protection=none"))
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
	const source = `
		[[noreturn]] void gone(int);
		void back(int);
		extern "C" int never(int i) { try { gone(i); } catch (int v) { return v + i; } return 2; }
		extern "C" int returns(int i) { try { back(i); } catch (int v) { return v + i; } return 2; }`
	for _, compiler := range []string{"-O0", "-O1", "-O2"} {
		p := recoverFile(t, compile(t, source, "-xc++", compiler, "-shared", "-fPIC"))
		if n := ends(routine(t, p, "never"))[cfg.NoReturn]; n == 0 {
			t.Errorf("%s: every call of never returns", compiler)
		}
		if r := routine(t, p, "returns"); len(r.Blocks[0].Succ) == 0 {
			t.Errorf("%s: the first block of returns has no successor: %+v", compiler, r.Blocks[0])
		}
	}
}

// A landing pad that begins with a trap is none that speaks: nothing of it ever runs. Rust has them
// where a panic cannot get to. Several that begin alike jump to what they have in common, and that
// is looked at for whether a call returns to one of them.
func TestPadsThatTrapOrJump(t *testing.T) {
	const source = `
		void gone(int), back(int);
		extern "C" int padded(int);
		asm(".text\n.type padded,@function\npadded:\n.cfi_startproc\n.cfi_personality 0x3,__gxx_personality_v0\n.cfi_lsda 0x3,9f\n"
			"push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
			"test %edi,%edi\nje 5f\n"
			"1: call _Z4backi\n2: pop %rbx\n.cfi_remember_state\n.cfi_adjust_cfa_offset -8\nret\n.cfi_restore_state\n"
			"3: MARK\nud2\n"
			"5: call _Z4gonei\n6: MARK\njmp 7f\n"
			"7: mov %rax,%rdi\ncall _Unwind_Resume\n"
			".cfi_endproc\n8: .size padded,.-padded\n"
			".section .gcc_except_table,\"a\"\n"
			"9: .byte 0xff,0xff,1\n.uleb128 11f-10f\n"
			"10: .uleb128 1b-padded\n.uleb128 2b-1b\n.uleb128 3b-padded\n.uleb128 0\n"
			".uleb128 5b-padded\n.uleb128 6b-5b\n.uleb128 6b-padded\n.uleb128 0\n"
			"11: .text\n");
		void (*volatile thrower)(int);
		void gone(int i) { thrower(i); }
		void back(int) {}
		int main(int argc, char **) { return padded(argc); }`
	for _, mark := range []string{"", "endbr64"} {
		r := routine(t, recoverFile(t, compile(t, strings.ReplaceAll(source, "MARK", mark), "-xc++", "-O1", "-no-pie", "-fno-pie")), "padded")
		if r.LeftOut != "" || len(r.Pads) != 1 {
			t.Errorf("%s: left out: %q, pads %v", mark, r.LeftOut, r.Pads)
		}
		if n := ends(r); n[cfg.Trap] != 1 || n[cfg.NoReturn] != 2 || n[cfg.Call] != 1 {
			t.Errorf("%s: blocks by how they end: %v", mark, n)
		}
	}
}

func TestSplitStack(t *testing.T) {
	const source = `
		__attribute__((noinline)) static int f(int k, int x) { volatile char room[100000]; room[k] = x; return room[k] + 1; }
		int main() { int s = 0; for (int i = 0; i < 20; i++) s = s * 3 + f(i, s & 63); return s; }`
	p := recoverFile(t, compile(t, source, "-O2", "-fsplit-stack"))
	for _, symbol := range []string{"main", "f"} {
		if r := routine(t, p, symbol); r.Cause != "may be entered in its middle, on another stack (-fsplit-stack)" {
			t.Errorf("%s is left out for %q", symbol, r.LeftOut)
		}
	}
}

// TestConditionalTail checks the jump out of a routine that a condition guards.
func TestConditionalTail(t *testing.T) {
	r := routine(t, recoverFile(t, compile(t, shapes, "-O2")), "maybe")
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
		p := recoverFile(t, compile(t, shapes, append(flags, "-fno-ipa-stack-alignment")...))
		for _, r := range p.Routines {
			for b := range r.Blocks {
				bl := &r.Blocks[b]
				q := bl.Insns[len(bl.Insns)-1]
				if q.Kind != x86.Call && q.Kind != x86.CallInd || r.LeftOut != "" || r.Symbol == "_start" {
					continue
				}
				switch {
				case r.Symbol == "variable", r.Symbol == "restorer": // see below; not written by a compiler
				case bl.Depth < 16 || bl.Depth%16 != 0:
					t.Errorf("%v: %s: the stack is not aligned at %x: depth %d", flags, r.Name, q.Addr, bl.Depth)
				}
				if cfa := r.CFA(q.Addr); cfa.Reg == 7 && int(cfa.Off) != bl.Depth {
					t.Errorf("%v: %s: depth %d at %x, row says %d", flags, r.Name, bl.Depth, q.Addr, cfa.Off)
				}
			}
		}
		if r := routine(t, p, "variable"); !slices.ContainsFunc(r.Blocks, func(b cfg.Block) bool { return b.End == cfg.Call && b.Depth < 0 }) {
			t.Errorf("%v: all depths of a routine with a variable array are known", flags)
		}
	}
}

func TestReferences(t *testing.T) {
	for _, flags := range [][]string{{"-O2", "-pie", "-fPIE"}, {"-O2", "-no-pie", "-fno-pie"}, {"-O2", "-fPIE", "-pie", "-fno-plt"}} {
		p := recoverFile(t, compile(t, shapes, flags...))
		for symbol, want := range map[string]bool{"sibling": true, "main": true, "leaf": false, "guarded": false, "dieLater": false} {
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
	full := recoverFile(t, compile(t, shapes, "-O2", "-static"))
	stripped := recoverFile(t, compile(t, shapes, "-O2", "-static", "-s"))
	for _, symbol := range []string{"__sigsetjmp", "_setjmp", "saver"} {
		if addr := routine(t, full, symbol).Addr; !full.ReturnsTwice(addr) || !stripped.ReturnsTwice(addr) {
			t.Errorf("%s at %x returns twice: %v, stripped %v; want both", symbol, addr, full.ReturnsTwice(addr), stripped.ReturnsTwice(addr))
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
	for _, flags := range [][]string{{"-O2", "-fPIE", "-pie"}, {"-O2", "-fno-pie", "-no-pie"}, {"-O2", "-fPIE", "-pie", "-fno-plt"}, {"-O2", "-static"}} {
		p := recoverFile(t, compile(t, source, append(flags, "-fno-builtin", "-w")...))
		for _, symbol := range []string{"again", "other"} { // a pointer of one may be the other's
			r, calls := routine(t, p, symbol), 0
			for b := range r.Blocks {
				if r.Blocks[b].End != cfg.CallInd {
					continue
				}
				calls++
				if !p.CallReturnsTwice(r, b) {
					t.Errorf("%v: the indirect call of %s returns twice: false, want true", flags, symbol)
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
