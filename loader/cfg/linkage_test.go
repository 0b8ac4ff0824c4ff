package cfg_test

import (
	"strconv"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
)

// outOfSight has ways into routines that control flow does not show. MOVABS takes the eight bytes
// behind it where something decodes from there.
const outOfSight = `
#define TEXT ".text\n.p2align 4\n"
#define FAR ".section .text.far,\"ax\"\n.p2align 4\n"
#define ROUTINE(name, code) IN(TEXT, name, code)
#define IN(section, name, code) __asm__(section ".type " #name ",@function\n" #name ":\n.cfi_startproc\n" code ".cfi_endproc\n.size " #name ",.-" #name "\n");
#define BARE(name, data, code) BARE_IN(FAR, name, data, code)
#define BARE_IN(section, name, data, code) __asm__(section data ".type " #name ",@function\n" #name ":\n" code ".size " #name ",.-" #name "\n");
#define PUSHED "push %rbx\n.cfi_adjust_cfa_offset 8\n"
#define MOVABS ".byte 0x48, 0xb8\n"
#define LEAF(name) ROUTINE(name, "lea 3(%rdi),%eax\nret\n")
LEAF(nobodys) LEAF(behind_data) LEAF(amid_data) LEAF(named_amid_data) LEAF(behind_pointer)
BARE(bare, MOVABS, "jmp behind_data\n")
ROUTINE(over_data, "jmp 1f\n" MOVABS "1: lea named_amid_data(%rip),%rax\nret\n")
IN(FAR, over_call, "jmp 1f\n" MOVABS "1: jmp amid_data\nnop\nnop\nnop\nnop\nnop\n")
ROUTINE(anywhere, PUSHED "jmp *(%rdi)\npop %rbx\n.cfi_adjust_cfa_offset -8\njmp behind_pointer\n")
ROUTINE(halves, "lea 3(%rdi),%eax\n.Lsecond: add $1,%eax\nret\n")
ROUTINE(to_second, PUSHED "pop %rbx\njmp .Lsecond\n")
ROUTINE(quarters, "lea 3(%rdi),%eax\n.Llast: add $1,%eax\nret\n")
BARE(bare_to_last, MOVABS, "jmp .Llast\n.p2align 5\n")
ROUTINE(thirds, "lea 3(%rdi),%eax\n.Lthird: add $1,%eax\nret\n")
BARE_IN(TEXT, bare_to_third, "", "jmp .Lthird\n")
LEAF(near_data)
BARE_IN(TEXT, bare_near, MOVABS, "jmp near_data\n")
ROUTINE(moves, "lea lands(%rip),%rax\nmov %rax,(%rsp)\nret\n")
ROUTINE(jumps_to_it, "jmp moves\n")
ROUTINE(jumps_by_register, "lea jumps_to_it(%rip),%rax\njmp *%rax\n")
ROUTINE(calls_by_register, PUSHED "lea moves(%rip),%rax\ncall *%rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(calls_by_slot, ".globl moves\n" PUSHED "call *moves@GOTPCREL(%rip)\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(seems_endless, PUSHED "call jumps_to_it\nud2\n")
ROUTINE(lands, ".cfi_def_cfa_offset 16\npop %rbx\n.cfi_def_cfa_offset 8\nret\n")
ROUTINE(endless, PUSHED "call abort@PLT\n")
ROUTINE(plain, PUSHED "call nobodys\npop %rbx\n.cfi_adjust_cfa_offset -8\nret\n")
ROUTINE(sets_directly, "jmp _setjmp@PLT\n")
ROUTINE(sets_by_slot, "jmp *_setjmp@GOTPCREL(%rip)\n")
ROUTINE(sets_by_register, "mov _setjmp@GOTPCREL(%rip),%rax\njmp *%rax\n")
ROUTINE(sets_by_two, "lea sets_by_register(%rip),%rax\njmp *%rax\n")
ROUTINE(sets_by_hidden_register, PUSHED "mov (%rdi),%rax\njmp *(%rax)\nmov _setjmp@GOTPCREL(%rip),%rax\npop %rbx\n.cfi_adjust_cfa_offset -8\njmp *%rax\n")
ROUTINE(sets_out_of_sight, PUSHED "mov (%rdi),%rax\njmp *(%rax)\npop %rbx\n.cfi_adjust_cfa_offset -8\njmp _setjmp@PLT\n")
#define CALLER(name) int name(void *); __attribute__((noinline)) int calls_##name(void *p) { return name(p) + 1; }
CALLER(jumps_by_register) CALLER(seems_endless) CALLER(endless) CALLER(plain) CALLER(sets_directly) CALLER(sets_by_slot) CALLER(sets_by_register) CALLER(sets_by_two) CALLER(sets_by_hidden_register) CALLER(sets_out_of_sight)
int main(int c, char **v) { return 0; }
`

// What is left out, and what is in no routine, may enter others from any of its bytes.
func TestWaysOutOfSight(t *testing.T) {
	for _, flags := range [][]string{{"-O1", "-fPIE", "-pie", "-Wl,--no-relax"}, {"-O1", "-fno-pie", "-no-pie", "-Wl,--no-relax"}} {
		p := recoverFile(t, compile(t, outOfSight, flags...))
		for symbol, want := range map[string]bool{"nobodys": false, "behind_data": true, "near_data": true, "amid_data": true, "named_amid_data": true, "behind_pointer": true} {
			if r := routine(t, p, symbol); p.AddressTaken(r.Addr) != want || r.LeftOut != "" {
				t.Errorf("%v: the address of %s is taken: %v; left out: %q", flags, symbol, !want, r.LeftOut)
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
	p := recoverFile(t, compile(t, outOfSight, "-O1"))
	for symbol, want := range map[string]int{"calls_seems_endless": 0, "calls_endless": 1} {
		if got := ends(routine(t, p, symbol))[cfg.NoReturn]; got != want {
			t.Errorf("%s has %d calls that never return, want %d", symbol, got, want)
		}
	}
}

// A routine that jumps to setjmp returns twice, too, however it jumps.
func TestJumpsToSetjmp(t *testing.T) {
	p := recoverFile(t, compile(t, outOfSight, "-O1"))
	for symbol, want := range map[string]bool{"plain": false, "sets_directly": true, "sets_by_slot": true, "sets_by_register": true, "sets_by_two": true, "sets_by_hidden_register": true, "sets_out_of_sight": true} {
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
	const length = 3 * cfg.MostRounds
	source := outOfSight + `
		ROUTINE(link0, "mov $1,%eax\n.Llink0: ret\n")
		ROUTINE(last, PUSHED "jmp *(%rdi)\ncall .Llink` + strconv.Itoa(length) + `\n")
		ROUTINE(set0, "jmp _setjmp@PLT\n")
		CALLER(set` + strconv.Itoa(length) + ")\n"
	for i := range length {
		source += strings.NewReplacer("THIS", strconv.Itoa(i+1), "BEFORE", strconv.Itoa(i)).Replace(`
			ROUTINE(linkTHIS, "mov $1,%eax\n.LlinkTHIS: ret\ncall .LlinkBEFORE\n")
			ROUTINE(setTHIS, "lea setBEFORE(%rip),%rax\njmp *%rax\n")`)
	}
	p := recoverFile(t, compile(t, source, "-O1"))
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
