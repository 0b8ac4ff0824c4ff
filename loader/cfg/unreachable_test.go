package cfg_test

import (
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// beginEnd has what assembly begins and ends a routine with.
const beginEnd = `
#define BEGIN(name) ".globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n"
#define END(name) ".cfi_endproc\n.size " #name ",.-" #name "\n"
`

// routineEnds has routines with jumps to where they end: behind them nothing but padding, another routine,
// code of which no unwind information tells, or the routine's cold part; or to where a cold part of theirs would be, in
// which nothing is left, and another routine begins; or to a cold part of another.
const routineEnds = beginEnd + `#define PUSH "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\n"
#define POP "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n"
#define JUMPS(name, before, after, behind) __asm__(BEGIN(name) before "cmp $3,%edi\nja 9f\nmov %edi,%eax\n" after END(name) "9: " behind "\n");
JUMPS(padded, PUSH, POP, ".p2align 4\nnop\n.p2align 4")
JUMPS(adjacent, PUSH, POP, "")
JUMPS(bare, "", "ret\n", ".p2align 4\nnop\n.p2align 4")
JUMPS(called, "", "ret\n", "")
JUMPS(unknown, PUSH, POP, "mov $1,%eax\npop %rbx\nret\n.p2align 4")
JUMPS(cold, PUSH, POP, "")
__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\njmp other_back\n.cfi_endproc\n"
	BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\nother_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other));
#define LEADS(name, to) __asm__(BEGIN(name) PUSH "cmp $3,%edi\nja " to "\nmov %edi,%eax\n" POP END(name));
LEADS(emptied, "emptied.cold")
LEADS(without, "without.cold")
LEADS(enters, "entered")
LEADS(moved, "moved.__part.1")
__asm__(".type emptied.cold,@function\nemptied.cold:\n.size emptied.cold,0\n" BEGIN(entered) "mov $1,%eax\nret\n" END(entered));
__asm__(".type without.cold,@function\n.type moved.__part.1,@function\n.type with.cold,@function\nwithout.cold:\nmoved.__part.1:\n.size without.cold,0\n.size moved.__part.1,0\n"
	"with.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_endproc\n.size with.cold,5\n"
	BEGIN(with) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz with.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(with));
LEADS(unsized, "unsized.cold")
__asm__(".type unsized.cold,@function\nunsized.cold:\n.cfi_startproc\nmov $7,%eax\npop %rbx\nret\n.cfi_endproc\n");
LEADS(folds, "folds.cold")
__asm__(".type folds.cold,@function\n.type folded.cold,@function\nfolds.cold:\nfolded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_endproc\n.size folds.cold,5\n.size folded.cold,5\n"
	BEGIN(folded) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded));
LEADS(meets, "other.cold")
JUMPS(goes_on, PUSH, POP, ".p2align 4\n.cfi_startproc\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx,-16\nmov $7,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc")
JUMPS(into_stub, PUSH, POP, ".cfi_startproc\n.cfi_def_cfa_offset -128\nsub $128,%rsp\n.cfi_def_cfa_offset 0\nadd $128,%rsp\n.cfi_def_cfa_offset -128\npop %rbx\nret\n.cfi_endproc")
JUMPS(into_named, PUSH, POP, ".type slow,@function\nslow: mov $7,%eax\npop %rbx\nret\n.size slow,.-slow")
__asm__(".section at_end,\"ax\"\n");
JUMPS(last, PUSH, POP, "")
__asm__(".text\n");

#define TABLE(name, before, after, check, entry, targets) __asm__(BEGIN(name) before check \
	"lea 9f(%rip),%rdx\nmov %edi,%edi\nmovslq (%rdx,%rdi,4),%rax\nadd %rdx,%rax\njmp *%rax\n" \
	"3: mov $1,%eax\n" after ".cfi_adjust_cfa_offset " entry "\n4: mov $2,%eax\n" after END(name) "8: .p2align 4\n" \
	".section .rodata\n.p2align 2\n9: " targets "\n.text\n");
#define CHECKED "cmp $3,%edi\nja 8f\n"
TABLE(entries, PUSH, POP, CHECKED, "8", ".long 3b-9b, 8b-9b, 4b-9b, 8b-9b")
TABLE(none, PUSH, POP, CHECKED, "8", ".long 8b-9b, 8b-9b, 8b-9b, 8b-9b")
TABLE(frameless, "", "ret\n", "cmp $3,%edi\nja 4f\n", "0", ".long 3b-9b, 8b-9b, 4b-9b, 4b-9b")
`

const callsOfEnds = `
	int padded(int), adjacent(int), bare(int), called(int), unknown(int), cold(int), other(int), emptied(int), entered(int), enters(int), moved(int), without(int), with(int), meets(int), unsized(int), folds(int), folded(int), goes_on(int), into_stub(int), into_named(int), last(int), entries(int), none(int), frameless(int);
	int main(int c, char **v) { return padded(c) + adjacent(c) + bare(c) + called(c) + unknown(c) + cold(c) + other(c) + emptied(c) + entered(c) + enters(c) + moved(c) + without(c) + with(c) + meets(c) + unsized(c) + folds(c) + folded(c) + goes_on(c) + into_stub(c) + into_named(c) + last(c) + entries(c) + none(c) + frameless(c); }`

// Without symbols nobody knows whether what a routine jumps to with another frame is nothing or, folded with another's, a
// part of its own; but for what goes back to the other's rest.
func TestFoldedPartsStripped(t *testing.T) {
	path := compile(t, routineEnds+callsOfEnds, "-O1")
	named := recoverFile(t, path)
	if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, b)
	}
	stripped := recoverFile(t, path)
	for symbol, leftOut := range map[string]bool{"other": false, "folded": true, "with": true} {
		if r := stripped.At(routine(t, named, symbol).Addr); strings.HasPrefix(r.LeftOut, "jumped to in its middle") != leftOut {
			t.Errorf("%s: left out: %q; since its cold part is jumped to: %v", symbol, r.LeftOut, leftOut)
		}
	}
}

// A conditional jump with a frame to a routine's end is never taken, and neither is such an entry of a
// switch's table; without a frame nobody knows.
func TestUnreachableEnds(t *testing.T) {
	p := recoverFile(t, compile(t, routineEnds+callsOfEnds, "-O1"))
	for _, test := range []struct {
		symbol, leftOut string
		jumps           int // conditional ones that are never taken
		targets         int // of the switch
	}{
		{symbol: "padded", jumps: 1},
		{symbol: "adjacent", jumps: 1},
		{symbol: "bare", leftOut: "jumps to unknown code"},
		{symbol: "called"},
		{symbol: "unknown", leftOut: "jumps to unknown code"},
		{symbol: "cold", jumps: 1},
		{symbol: "other"},
		{symbol: "emptied", jumps: 1},
		{symbol: "entered"},
		{symbol: "enters", leftOut: "jumps out with a frame"},
		{symbol: "moved", jumps: 1},
		{symbol: "without", jumps: 1},
		{symbol: "with"},
		{symbol: "unsized", leftOut: "jumps out with a frame"},
		{symbol: "folds", leftOut: "jumps into the middle of another routine"},
		{symbol: "folded", leftOut: "jumped to in its middle"},
		{symbol: "meets", leftOut: "jumps into the middle of another routine"},
		{symbol: "goes_on", leftOut: "jumps to unknown code"},
		{symbol: "into_stub", leftOut: "jumps out with a frame"},
		{symbol: "into_named", leftOut: "jumps out with a frame"},
		{symbol: "last", jumps: 1},
		{symbol: "entries", jumps: 1, targets: 2},
		{symbol: "none", leftOut: "unresolved indirect jump"},
		{symbol: "frameless", leftOut: "unresolved indirect jump"},
	} {
		r := routine(t, p, test.symbol)
		if test.leftOut == "" && r.LeftOut != "" || !strings.HasPrefix(r.LeftOut, test.leftOut) {
			t.Errorf("%s: left out: %q, want %q", test.symbol, r.LeftOut, test.leftOut)
		}
		if r.LeftOut != "" {
			continue
		}
		jumps, targets := 0, 0
		for b := range r.Blocks {
			switch bl := &r.Blocks[b]; bl.End {
			case cfg.Jcc:
				if bl.Succ[0] == bl.Succ[1] {
					jumps++
				}
			case cfg.Table:
				targets = len(bl.Succ)
				if bl.Table.Targets != nil {
					t.Errorf("%s: its switch's entries are %v, though some are never taken", test.symbol, bl.Table.Targets)
				}
			}
		}
		if jumps != test.jumps || targets != test.targets {
			t.Errorf("%s: %d jumps are never taken, want %d; the switch has %d targets, want %d", test.symbol, jumps, test.jumps, targets, test.targets)
		}
	}
}

// Parts that are jumped to with another frame than they begin with, and one that nothing leads to.
func TestPartsOfOthers(t *testing.T) {
	for _, test := range []struct {
		name, source, symbol, leftOut string
		flags                         []string
	}{
		{"by code that does not decode", `__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\njmp other_back\n.cfi_endproc\n"
			BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\nother_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other)
			BEGIN(bad) ".cfi_def_cfa_offset 16\n.byte 6\njz other.cold\nret\n" END(bad));
			int other(int), bad(int); int main(int c, char **v) { return other(c) + bad(c); }`, "other", "jumped to in its middle", nil},
		{"that returns from elsewhere", `__asm__("folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_def_cfa_offset 8\nin_cold: mov $7,%eax\nret\n.cfi_endproc\n"
			BEGIN(folded) "test %esi,%esi\njs in_cold\nsub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded)
			BEGIN(folds) "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\nja folded.cold\nmov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds));
			int folded(int, int), folds(int); int main(int c, char **v) { return folded(c, 1) + folds(c); }`, "folded", "jumped to in its middle", nil},
		{"that begins with another frame than the jump has, for all that is known", `__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\njmp other_back\n.cfi_endproc\n"
			BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\nother_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other)
			BEGIN(hand) "sub $24,%rsp\ntest %edi,%edi\njnz other.cold\nadd $24,%rsp\nret\n" END(hand));
			int other(int), hand(int); int main(int c, char **v) { return other(c) + hand(c); }`, "other", "jumped to in its middle", nil},
		{"that calls what is found not to return", `void exit(int); __attribute__((noinline,used)) static void die(void) { __asm__ volatile(""); exit(3); }
			__asm__(BEGIN(folds) "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\nja 9f\nmov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds)
			"9: folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall die\n.cfi_def_cfa_offset 8\nin_cold: mov $7,%eax\nret\n.cfi_endproc\n"
			BEGIN(folded) "test %esi,%esi\njs in_cold\nsub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded));
			int folded(int, int), folds(int); int main(int c, char **v) { return folded(c, 1) + folds(c); }`, "folds", "jumps into the middle of another routine", nil},
		{"that is long", `__asm__("folded.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\n.rept 300\nnop\n.endr\nadd $24,%rsp\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n"
			BEGIN(folded) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz folded.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(folded)
			BEGIN(folds) "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbx,-16\ncmp $3,%edi\nja folded.cold\nmov %edi,%eax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n" END(folds));
			int folded(int), folds(int); int main(int c, char **v) { return folded(c) + folds(c); }`, "folded", "jumped to in its middle", nil},
		{"of the first routine", `void exit(int); int work(int a) { return a * 3; }
			__asm__(".globl _start\n.type _start,@function\n_start:\n.cfi_startproc\n.cfi_undefined %rip\nxor %ebp,%ebp\nmov $3,%edi\ncall work\nmov %eax,%edi\ncall exit\njmp start_part\n.cfi_endproc\n.size _start,.-_start\n"
			"start_part:\n.cfi_startproc\n.cfi_def_cfa %rbp,16\ncall work\nhlt\n.cfi_endproc\n");`, "_start", "nothing leads to its part", []string{"-nostartfiles", "-fno-pie", "-no-pie"}},
	} {
		if r := routine(t, recoverFile(t, compile(t, beginEnd+test.source, append(test.flags, "-O1")...)), test.symbol); !strings.HasPrefix(r.LeftOut, test.leftOut) {
			t.Errorf("a part %s: %s is left out: %q, want %q", test.name, test.symbol, r.LeftOut, test.leftOut)
		}
	}
}

// A part that data leads into may be another's as well, but for one that goes back into its routine.
func TestPartThatDataLeadsTo(t *testing.T) {
	const source = `__asm__("other.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\nmov $7,%eax\nin_cold: ENDS\n.cfi_endproc\n"
		BEGIN(other) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njz other.cold\nother_back: add $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(other)
		".data\n.quad in_cold\n.text\n");
		int other(int); int main(int c, char **v) { return other(c); }`
	for ends, leftOut := range map[string]string{"jmp other_back": "", "call abort": "jumped to in its middle"} {
		r := routine(t, recoverFile(t, compile(t, beginEnd+strings.ReplaceAll(source, "ENDS", ends), "-O1")), "other")
		if !strings.HasPrefix(r.LeftOut, leftOut) || (leftOut == "") != (r.LeftOut == "") {
			t.Errorf("a part that ends by %s: its routine is left out: %q, want %q", ends, r.LeftOut, leftOut)
		}
	}
}

// A part with landing pads is no other routine's as well: what jumps there with another frame never does.
func TestPartWithLandingPadsIsNotFolded(t *testing.T) {
	const source = `__asm__(".section .text.unlikely,\"ax\"\nf.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 32\ncall abort\n.cfi_endproc\n"
		"g.cold:\n.cfi_startproc\n.cfi_def_cfa_offset 48\nPADS4: call abort\n5: call abort\n6:\n.cfi_endproc\n.text\n"
		BEGIN(f) "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\ntest %edi,%edi\njs f.cold\njz g.cold\nadd $24,%rsp\n.cfi_adjust_cfa_offset -24\nret\n" END(f)
		BEGIN(g) "sub $40,%rsp\n.cfi_adjust_cfa_offset 40\ntest %edi,%edi\njz g.cold\nadd $40,%rsp\n.cfi_adjust_cfa_offset -40\nret\n" END(g)
		".section .gcc_except_table,\"a\"\nsites: .byte 255,255,1\n.uleb128 2f-1f\n1: .uleb128 4b-g.cold, 5b-4b, 5b-g.cold, 0\n2:\n.text\n");
		int f(int), g(int), __gcc_personality_v0(); void *used = __gcc_personality_v0; int main(int c, char **v) { return f(c) + g(c); }`
	for pads, leftOut := range map[string]bool{"": true, `.cfi_personality 3,__gcc_personality_v0\n.cfi_lsda 3,sites\n`: false} {
		path := compile(t, beginEnd+strings.ReplaceAll(source, "PADS", pads), "-O1", "-w", "-fno-pie", "-no-pie")
		named := recoverFile(t, path)
		if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
			t.Fatalf("strip: %v\n%s", err, b)
		}
		stripped := recoverFile(t, path)
		for _, symbol := range []string{"f", "g"} {
			if r := stripped.At(routine(t, named, symbol).Addr); (r.LeftOut != "") != leftOut {
				t.Errorf("pads %q: %s is left out: %q, want %v", pads, symbol, r.LeftOut, leftOut)
			}
		}
	}
}
