package recovery_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/absint"
)

// Loops in rdi and rsi, at label again, and how their rounds are known there: "exact" what they are to
// begin with, "ends" what rdi is in the end, "" nothing.
var loops = []struct{ body, counted string }{
	{"add $1, %rdi\ncmp %rsi, %rdi\njne again", "exact"},
	{"add $8, %rdi\ncmp %rdi, %rsi\njne again", "exact"},
	{"lea 3(%rdi), %rdi\ncmp %rsi, %rdi\njne again", "exact"},
	{"sub $5, %rdi\ncmp %rsi, %rdi\njne again", "exact"},
	{"cmp %rsi, %rdi\nlea 1(%rdi), %rdi\njne again", "exact"},
	{"mov %rdi, %rax\nadd $2, %rdi\nlea 7(%rax), %rdx\ncmp %rsi, %rdx\njne again", "exact"},
	{"dec %edi\ncmp %esi, %edi\njne again", "exact"},
	{"inc %edi\ncmp %edi, %esi\njne again", "exact"},
	{"add $12, %edi\nmov %edi, %eax\ncmp %esi, %eax\njne again", "exact"},
	{"add $3, %edi\ncmp %esi, %edi\nje done%[1]d\njmp again\ndone%[1]d:", ""}, // two blocks
	{"sub $1, %edi\njne again", "exact"},
	{"inc %rdi\ntest %rdi, %rdi\njne again", "exact"},
	{"add $4, %rdi\ncmp $400, %rdi\njne again", "exact"},
	// rsi is what it goes by,
	{"lea 1(%rdi), %rdi\nmov %rsi, %rax\nsub $1, %rsi\ntest %rax, %rax\njne again", "ends"},
	{"add $1, %rdi\nsub $2, %rsi\ncmp %rsi, %rdi\njl again", "ends"},
	{"add $1, %rdi\ncmp %rsi, %rdi\njb again", "ends"},
	{"sub $7, %rdi\ncmp %rsi, %rdi\njg again", "ends"},
	{"add $1, %edi\ncmp %esi, %edi\njb again", "ends"},
	// the other changes, so that 32 bits may wrap around
	{"add $1, %edi\nsub $1, %esi\ncmp %esi, %edi\njb again", ""},
	{"add $1, %rdi\nadd %rdi, %rsi\ntest $96, %sil\njne again", "ends"},
	{"add %rsi, %rdi\ncmp $5000, %rdi\njl again", ""},
	{"add $1, %di\ncmp %si, %di\njne again", ""},
	{"add $1, %rdi\nmovzbl %dil, %edi\ncmp %rsi, %rdi\njne again", ""},
	{"xchg %rdi, %rsi\nadd $1, %rdi\ncmp $300, %rdi\njne again", ""},
	{"add $1, %rdi\nshl $40, %rdi\nshr $40, %rdi\ncmp %rsi, %rdi\njne again", ""},
	{"movslq %edi, %rdi\nadd $1, %rdi\ncmp %rsi, %rdi\njne again", ""},
	{"movabs $0x8000000000000000, %rax\nadd %rax, %rdi\ncmp %rsi, %rdi\njne again", ""},
	// too large for what wraps around not to come about
	{"add $0x100000, %rdi\ncmp %rsi, %rdi\njb again", ""},
}

// begins are what rdi and rsi hold where the loops begin: of each loop, those with which it soon
// ends.
var begins = [][2]int64{{0, 1}, {0, 24}, {1, 121}, {3, 63}, {50, 0}, {-40, 40}, {396, 3}, {1, 0},
	{0xfffffff0, 0x100000008}, {1 << 40, 1<<40 + 24}, {0, 60}, {-1, 0}, {5, 5}}

// TestCountersAsTheProcessorHasIt: what a loop is said to be counted by says how many rounds the
// processor runs.
func TestCountersAsTheProcessorHasIt(t *testing.T) {
	const most = 100
	var source, calls strings.Builder
	for i, l := range loops {
		body := strings.ReplaceAll(strings.ReplaceAll(l.body, "%[1]d", fmt.Sprint(i)), "again",
			fmt.Sprintf("again%d", i))
		fmt.Fprintf(&source, ".globl f%d\n.type f%d, @function\nf%d: .cfi_startproc\n"+
			".cfi_remember_state\nagain%d: nop\n%s\nret\n.cfi_endproc\n.size f%d, .-f%d\n", i, i, i,
			i, body, i, i)
		fmt.Fprintf(&calls, "count(f%d);", i)
	}
	var values strings.Builder
	for _, v := range begins {
		fmt.Fprintf(&values, "{%dL, %dL}, ", v[0], v[1])
	}
	// It counts how often the first instruction of a loop runs by single-stepping.
	program := fmt.Sprintf(`
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
asm(".text\n" %s);
void %s;
long begins[][2] = {%s};
static void count(void (*f)(void))
{
	for (unsigned i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		struct user_regs_struct regs;
		int status, child = fork(), rounds = 0;
		if (!child) {
			ptrace(PTRACE_TRACEME, 0, 0, 0);
			raise(SIGSTOP);
			_exit(0);
		}
		waitpid(child, &status, 0);
		ptrace(PTRACE_GETREGS, child, 0, &regs);
		regs.rip = (long)f, regs.rdi = begins[i][0], regs.rsi = begins[i][1], regs.orig_rax = -1;
		ptrace(PTRACE_SETREGS, child, 0, &regs);
		while (rounds < %d) {
			ptrace(PTRACE_GETREGS, child, 0, &regs);
			if (*(unsigned char *)regs.rip == 0xc3)
				break;
			rounds += *(unsigned char *)regs.rip == 0x90;
			ptrace(PTRACE_SINGLESTEP, child, 0, 0);
			waitpid(child, &status, 0);
		}
		printf("%%d %%lld ", rounds, regs.rdi);
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
}
int main(void) { %s }`, quoted(source.String()), declared(len(loops)), &values, most, &calls)
	path := compile(t, program, "-O1")
	out, err := exec.Command(path).Output()
	if err != nil {
		t.Fatal(err)
	}
	p, results := recoverFile(t, path), strings.Fields(string(out))
	for i, l := range loops {
		counter := counterOf(routine(t, p, fmt.Sprintf("f%d", i)))
		counted := ""
		if counter != nil && counter.Exact {
			counted = "exact"
		} else if counter != nil {
			counted = "ends"
		}
		if counted != l.counted {
			t.Errorf("%s: counted by %q, want %q", l.body, counted, l.counted)
			continue
		}
		for k := range begins {
			var rounds uint64
			var end int64
			fmt.Sscan(results[2*(i*len(begins)+k)], &rounds)
			fmt.Sscan(results[2*(i*len(begins)+k)+1], &end)
			if counted != "" && rounds < most {
				checkRounds(t, l.body, counter, begins[k], end, rounds)
			}
		}
	}
}

func checkRounds(t *testing.T, body string, c *absint.Counter, begin [2]int64, end int64,
	want uint64) {
	t.Helper()
	const known = 60
	got, ok := uint64(0), false
	if c.Exact {
		distance := -uint64(begin[0])
		for _, term := range c.Limit.Terms[:c.Limit.N] {
			reg, _, _ := term.Symbol.Register()
			distance += uint64(term.Times) * uint64(begin[7-reg]) // rdi is 7, rsi 6
		}
		got, ok = c.RoundsTo(distance+uint64(c.Limit.Add), known)
	} else {
		got, ok = c.RoundsBetween(uint64(end)-uint64(begin[0]), known)
	}
	if !ok || got != want {
		t.Errorf("%s from %v to %d: got %d rounds (%v), want %d", body, begin, end, got, ok, want)
	}
}

// counterOf is what counts in rdi, in the loop of a routine, if anything does.
func counterOf(r *cfg.Routine) *absint.Counter {
	for b := range r.Blocks {
		for _, c := range r.Counters(b) {
			if c.Reg == 7 {
				return &c
			}
		}
	}
	return nil
}

func quoted(assembly string) (c string) {
	for line := range strings.Lines(assembly) {
		c += fmt.Sprintf("%q\n", line)
	}
	return c
}

func declared(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("f%d(void)", i))
	}
	return strings.Join(list, ", ")
}

// TestRounds: rounds are what counting them in a register comes to, which may wrap around.
func TestRounds(t *testing.T) {
	const known = 60
	for _, width := range []int{32, 64} {
		for _, step := range []int64{1, -1, 3, -8, 12, 1 << 14} {
			c := absint.Counter{Width: width, Step: step}
			exact := absint.Counter{Width: width, Step: step, Exact: true, Lead: step}
			for _, rounds := range []uint64{1, 2, 7, 1000} {
				added := rounds * uint64(step)
				if width == 32 {
					added = uint64(uint32(added)) | 0xabcd<<32
				}
				if n, ok := c.RoundsBetween(added, known); n != rounds || !ok {
					t.Errorf("%d bits, step %d: %d rounds from %x, %v; want %d", width, step, n,
						added, ok, rounds)
				}
				if n, ok := exact.RoundsTo(added, known); n != rounds || !ok {
					t.Errorf("%d bits, step %d: %d rounds to a limit %x away, %v; want %d", width,
						step, n, added, ok, rounds)
				}
				if n, ok := exact.RoundsSince(added, added+2*uint64(step), known); n != rounds+1 ||
					!ok {
					t.Errorf("%d bits, step %d: round %d is where %x has been added, %v; want %d",
						width, step, n, added, ok, rounds+1)
				}
				if n, ok := c.RoundsSince(added, 0, known); ok != (width == 64) ||
					ok && n != rounds+1 {
					t.Errorf("%d bits, step %d: round %d is where %x has been added, %v", width,
						step, n, added, ok)
				}
			}
		}
	}
	for _, c := range []struct {
		name   string
		n      uint64
		ok     bool
		rounds func() (uint64, bool)
	}{
		{"all that a register can count", 1 << 29, true,
			func() (uint64,
				bool) {
				return (&absint.Counter{Width: 32, Step: -8}).RoundsBetween(0, known)
			}},
		{"none that 64 bits can count", 0, false,
			func() (uint64,
				bool) {
				return (&absint.Counter{Width: 64, Step: 8}).RoundsBetween(0, known)
			}},
		{"a limit that is stepped over", 0, false, func() (uint64, bool) {
			return (&absint.Counter{Width: 64, Step: 8, Exact: true, Lead: 8}).RoundsTo(12, known)
		}},
		{"a limit on the other side", 0, false, func() (uint64, bool) {
			return (&absint.Counter{Width: 64, Step: 8, Exact: true, Lead: 8}).RoundsTo(1<<60-16,
				known)
		}},
		{"in a loop that only a signal ends", 0, false, func() (uint64, bool) {
			return (&absint.Counter{Width: 32, Step: 1 << 16, Exact: true,
				Lead: 1 << 16}).RoundsSince(1<<16, 1, known)
		}},
	} {
		if n, ok := c.rounds(); ok != c.ok || ok && n != c.n {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, n, ok, c.n, c.ok)
		}
	}
}
