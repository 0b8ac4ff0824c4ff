package planner_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
)

// prove fails for each place where the plan's a probe-free route is not sound.
func prove(t *testing.T, p *plan.Plan) {
	t.Helper()
	for i, f := range verify.Plan(p) {
		if i < 10 {
			t.Errorf("%s: %s", p.Program.Image.Name, f)
		}
	}
}

// TestEveryProbeIsNeeded: whichever probe is taken out of a plan, a probe-free route is not sound
// any more.
func TestEveryProbeIsNeeded(t *testing.T) {
	c := compileFile(t, "kinds.c", "-O2")
	for _, s := range planned(t, c, planner.Options{Complete: true}).Sites {
		p := planned(t, c, planner.Options{Complete: true})
		withoutProbe(p, p.Routines[s.Routine], s.Block)
		if faults := verify.Plan(p); len(faults) == 0 {
			t.Errorf("without the probe at %x of %s no fault is found", s.Addr,
				p.Routines[s.Routine].Name)
		}
	}
}

// TestFaultsLeadToLandingPads: an exception that a signal handler throws comes to the landing pad
// of what is no call, at any time in a routine that would else have no event.
func TestFaultsLeadToLandingPads(t *testing.T) {
	const source = `
		static __attribute__((noinline)) int peek(volatile int *p) { try { return p[0] + p[1];
			} catch (int e) { return e; } }
		int main(int argc, char **argv) { return peek((int *)argv) + peek(&argc); }`
	p := planned(t, compile(t, source, "-xc++", "-O2", "-fnon-call-exceptions"), planner.Options{})
	r := routine(t, p, "_ZL4peekPVi")
	if !r.Faulty || r.ProbeFree {
		t.Errorf("faults lead to its landing pads: %v, probe-free: %v", r.Faulty, r.ProbeFree)
	}
	prove(t, p)
	r.ProbeFree = true
	s, insns := r.Site(r.Entry), r.Blocks[r.Entry].Insns
	s.Insn = len(insns) - 1
	s.Addr, s.Stepped = insns[s.Insn].Addr, true
	s.Offset = r.CFA(s.Addr).Off
	faults := verify.Plan(p)
	for _, want := range []string{"it may end without an event, and faults may lead to its " +
		"landing pad", "a fault may lead to its landing pad before its first event"} {
		if !slices.ContainsFunc(faults,
			func(f verify.Fault) bool { return strings.Contains(f.String(), want) }) {
			t.Errorf("%v, want %q", faults, want)
		}
	}
}

// TestUnseenCodeEnters: what lies behind a jump of which it is not known where it leads may run,
// and enter what its callers would report.
func TestUnseenCodeEnters(t *testing.T) {
	p := planned(t, compile(t, assemble(
		[2]string{"user", `call leaf\ncall whole\nret`},
		[2]string{"lost",
			`push %rbx\n.cfi_adjust_cfa_offset 8\njmp *(%rdi)\ncall leaf\ncall whole+1\npop %rbx\n.cfi_adjust_cfa_offset -8\nret`},
		[2]string{"behind",
			`push %rbx\n.cfi_adjust_cfa_offset 8\njmp *(%rdi)\n.byte 0x48, 0xb8\ncall leaf\nnop\nnop\nnop\npop %rbx\n.cfi_adjust_cfa_offset -8\nret`},
		[2]string{"leaf", `nop\nret`},
		[2]string{"whole", `nop\nret`}), "-O1"), planner.Options{})
	prove(t, p)
	leaf := routine(t, p, "leaf")
	whole := p.Routines[slices.IndexFunc(p.Routines,
		func(r *plan.Routine) bool { return r.Symbol == "whole" })]
	if leaf.ProbeFree || !leaf.Traced() {
		t.Errorf("leaf may end without an event: %v, is traced: %v", leaf.ProbeFree, leaf.Traced())
	}
	if !strings.HasPrefix(whole.LeftOut, "called in its middle at") {
		t.Errorf("whole is left out: %q", whole.LeftOut)
	}
	leaf.ProbeFree, whole.LeftOut = true, ""
	faults := verify.Plan(p)
	for _, want := range []string{"it may end without an event, and lost, which is left out, " +
		"enters it", "it may end without an event, and behind, which is left out, enters it",
		"lost, which is left out, enters it in its middle"} {
		if !slices.ContainsFunc(faults,
			func(f verify.Fault) bool { return strings.Contains(f.String(), want) }) {
			t.Errorf("%v, want %q", faults, want)
		}
	}
}

// more has what kinds has not: a way into the library by a jump, a loop that may end where it might
// have called, recursion from a frame of unknown size, jumps that ask for one place in the frame.
const more = `
.text
.macro routine name
.globl \name
.type \name, @function
\name: .cfi_startproc
.endm
.macro done name
.cfi_endproc
.size \name, .-\name
.endm
.macro enter
	push %rbx
	.cfi_def_cfa_offset 16
	.cfi_offset 3, -16
.endm
.macro leave_
	pop %rbx
	.cfi_def_cfa_offset 8
	ret
.endm
routine jumps_out
	push %rbx
	.cfi_def_cfa_offset 16
	pop %rbx
	.cfi_def_cfa_offset 8
	jmp qsort@PLT
done jumps_out
routine calls_after
	enter
	test %edi, %edi
	je 1f
	call jumps_out@PLT
	call local
	nop
	call *(%rbx)
	nop
1:	leave_
done calls_after
local:	.cfi_startproc
	lea 1(%rdi), %eax
	ret
done local
routine loops_on
	enter
	mov %edi, %ebx
1:	cmp $3, %ebx
	jle 2f
	cmp $5, %ebx
	je 3f
	mov %ebx, %edi
	call *(%rsi)
	mov %eax, %ebx
	jmp 1b
3:	dec %ebx
	jmp 1b
2:	leave_
done loops_on
routine recurs
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	sub %rax, %rsp
	test %edi, %edi
	je 1f
	call recurs@PLT
	call recurs@PLT
1:	leave
	.cfi_def_cfa 7, 8
	ret
done recurs
routine asks
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	mov %edi, -8(%rbp)
	testl $1, -8(%rbp)
	je 1f
	mov %eax, %ecx
1:	testl $2, -8(%rbp)
	je 1f
	mov %eax, %ecx
1:	cmpl $4, -8(%rbp)
	jae 1f
	mov %eax, -12(%rbp)
1:	mov %eax, -8(%rbp)
	jmp 1f
1:	testl $8, -8(%rbp)
	je 1f
	mov %eax, %ecx
1:	pop %rbp
	.cfi_def_cfa 7, 8
	ret
done asks
routine asks_reg
	test $1, %dil
	je 1f
	mov %eax, %ecx
1:	test $2, %dil
	je 1f
	mov %eax, %ecx
1:	cmp $4, %edi
	jae 1f
	mov %eax, %edx
1:	mov $6, %esi
	add %eax, %edi
	jmp 1f
1:	test $8, %dil
	je 1f
	mov %eax, %ecx
1:	ret
done asks_reg
routine asks_loop
	test $1, %dil
	je 1f
	mov %eax, %ecx
1:	test $2, %dil
	je 2f
	mov $16, %edi
1:	movb $0, (%rsi,%rdi)
	sub $1, %edi
	jne 1b
	ret
2:	test $4, %dil
	je 1f
	mov %eax, %ecx
1:	ret
done asks_loop
routine asks_spoiled
	test $1, %dil
	je 1f
	mov %eax, %ecx
1:	test $4, %dil
	je 2f
	mov %eax, %edi
2:	test $2, %dil
	je 1f
	mov %eax, %ecx
1:	ret
done asks_spoiled
routine calls_silently
	enter
	call begun_silently
	leave_
done calls_silently
routine begun_silently
	sub $8, %rsp
	.cfi_def_cfa_offset 16
1:	mov %eax, %ecx
	call qsort@PLT
	test %eax, %eax
	jne 1b
	call abort@PLT
done begun_silently
routine ping
	mov %eax, %ecx
	call pong
	nop
	ret
done ping
routine pong
	mov %eax, %ecx
	call ping
	nop
	ret
done pong
routine adds_up
	test %edi, %edi
	je 2f
1:	movzbl (%rsi), %eax
	add $1, %rsi
	xor %eax, %ecx
	cmp %rdx, %rsi
	jne 1b
2:	mov %ecx, %eax
	ret
done adds_up
routine scans
	enter
1:	movzbl (%rdi), %eax
	add $1, %rdi
	test %al, %al
	jne 1b
	cmp $7, %esi
	je 2f
	mov %esi, %eax
2:	leave_
done scans
.data
.quad jumps_out, loops_on, asks_reg, asks_loop, asks_spoiled, calls_silently, adds_up, scans
.text
`

// block returns the first block of a routine for which is holds and that has a probe.
func block(t *testing.T, r *plan.Routine, is func(b int) bool) int {
	t.Helper()
	for b := range r.Blocks {
		if r.Site(b) != nil && is(b) {
			return b
		}
	}
	t.Fatalf("no such probe in %s", r.Name)
	return 0
}

func anyBlock(*plan.Routine, int) bool { return true }

// A breakage is a way to break a plan, and what the verifier has to say of it.
type breakage struct {
	name    string
	routine string
	breaks  func(t *testing.T, p *plan.Plan, r *plan.Routine)
	what    string
	ways    int
}

// without takes out the first probe of those blocks.
func without(is func(r *plan.Routine, b int) bool) func(*testing.T, *plan.Plan, *plan.Routine) {
	return func(t *testing.T, p *plan.Plan, r *plan.Routine) {
		withoutProbe(p, r, block(t, r, func(b int) bool { return is(r, b) }))
	}
}

// site changes the first site of a routine for which is holds.
func site(is func(s *plan.Site) bool, change func(s *plan.Site)) func(*testing.T, *plan.Plan,
	*plan.Routine) {
	return func(t *testing.T, _ *plan.Plan, r *plan.Routine) {
		change(r.Site(block(t, r, func(b int) bool { return is(r.Site(b)) })))
	}
}

// callOf is where a call of a traced routine that the routine makes returns to.
func callOf(p *plan.Plan, r *plan.Routine) (ra uint64) {
	for b := range r.Blocks {
		if kind, _ := r.Callee(b); kind == plan.Known && r.Blocks[b].IsCall() {
			ra = r.Blocks[b].Hi
		}
	}
	return ra
}

func anySite(*plan.Site) bool { return true }

// value changes the first captured value of a routine that decides jumps.
func value(change func(c *plan.Capture) *plan.Capture) func(*testing.T, *plan.Plan, *plan.Routine) {
	return site(func(s *plan.Site) bool { return captures(s, plan.JumpPlace) }, func(s *plan.Site) {
		c := *s.Capture
		c.Jumps = slices.Clone(c.Jumps)
		s.Capture = change(&c)
	})
}

// reading changes the first captured registers of a routine.
func reading(change func(x *plan.Registers)) func(*testing.T, *plan.Plan, *plan.Routine) {
	return site(func(s *plan.Site) bool { return captures(s, plan.LoopRegisters) },
		func(s *plan.Site) {
			c := *s.Capture
			change(&c.Registers)
			s.Capture = &c
		})
}

// captures reports whether a site records a value of a kind.
func captures(s *plan.Site, kind plan.CaptureKind) bool {
	return s != nil && s.Capture != nil && s.Capture.Kind == kind
}

// lastReading is the last block of a routine whose event captures registers.
func lastReading(r *plan.Routine) (last int) {
	for b := range r.Blocks {
		if captures(r.Site(b), plan.LoopRegisters) {
			last = b
		}
	}
	return last
}

// countedLoop is a loop whose rounds other events decide.
func countedLoop(r *plan.Routine) (loop int) {
	for b := range r.Blocks {
		if r.Counts(b) != nil {
			loop = b
		}
	}
	return loop
}

// asksLast is the last block of a routine whose jump asks for one place.
func asksLast(r *plan.Routine) (last int) {
	for b := range r.Blocks {
		if r.Asks(b) != nil {
			last = b
		}
	}
	return last
}

// call changes what the table has of the routine's first call.
func call(change func(p *plan.Plan, at uint64)) func(*testing.T, *plan.Plan, *plan.Routine) {
	return func(_ *testing.T, p *plan.Plan, r *plan.Routine) {
		b := slices.IndexFunc(r.Blocks, func(b cfg.Block) bool { return calls(&b) })
		change(p, r.Blocks[b].Hi)
	}
}

var breakages = []breakage{
	{"a decision without an event", "dense",
		without(func(r *plan.Routine, b int) bool { return r.Blocks[b].End == cfg.Jcc }),
		"two probe-free routes to the same place", 2},
	{"a loop without an event", "loops", without(anyBlock), "a circle without an event", 2},
	{"an entry without an event", "taken_leaf", without(anyBlock), "a circle without an event", 2},
	{"a circle of calls without an event", "ping",
		func(t *testing.T, p *plan.Plan, ping *plan.Routine) {
			for _, r := range []*plan.Routine{ping, routine(t, p, "pong")} {
				for b := range r.Blocks {
					if r.Site(b) != nil {
						withoutProbe(p, r, b)
					}
				}
			}
		}, "again and again without an event", 1},
	{"setjmp returns without an event", "jumps",
		without(func(r *plan.Routine, b int) bool { return b > 0 }),
		"what follows a call that may return twice has no probe", 1},
	{"the library is called without an event", "outside",
		without(func(r *plan.Routine, b int) bool { return b > 0 }),
		"enters external code has no probe", 1},
	{"two calls of anything", "indirect",
		without(func(r *plan.Routine, b int) bool { return b > 0 }),
		"may come from the first or from the last call", 2},
	{"a call of anything before an event", "indirect",
		without(func(r *plan.Routine, b int) bool { return b == 0 }), "entered before an event", 1},
	{"a frame of unknown size", "framed", without(anyBlock), "from a frame of unknown size", 1},
	{"a frame of unknown size after recursion", "recurs",
		without(func(_ *plan.Routine, b int) bool { return b == 2 }),
		"may be that of another activation", 1},
	{"the library behind a jump, then a call of anything", "calls_after",
		without(func(r *plan.Routine, b int) bool { return calls(&r.Blocks[b]) }),
		"may come from the first or from the last call", 2},
	{"the plan forgets that the library is behind a jump", "jumps_out",
		func(_ *testing.T, p *plan.Plan,
			r *plan.Routine) {
			searchOf(p).SetMayLeaveOpen(p, r.ID, false)
		}, "the plan does not say so", 0},
	{"a call of anything, or the end", "loops_on",
		without(func(r *plan.Routine, b int) bool { return r.Blocks[b].End == cfg.Jcc }),
		"from the caller after its end", 2},
	{"a probe-free routine whose address is taken", "taken_leaf",
		func(_ *testing.T, _ *plan.Plan,
			r *plan.Routine) {
			r.ProbeFree = true
		}, "may end without an event, and external code may enter it", 0},
	{"first", "loops", site(anySite, func(s *plan.Site) { s.First = !s.First }),
		"possible first event", 0},
	{"another event of the activation", "loops",
		site(func(s *plan.Site) bool { return !s.SameActivation[0] },
			func(s *plan.Site) { s.SameActivation[0] = true }),
		"is taken to be followed by another of its activation", 1},
	{"another event of the activation when the jump is taken", "loops",
		site(func(s *plan.Site) bool {
			return s.Condition < plan.NoCondition && !s.SameActivation[1]
		}, func(s *plan.Site) { s.SameActivation[1] = true }),
		"is taken to be followed by another of its activation", 1},
	{"an only caller of what other code enters", "loops",
		site(anySite, func(s *plan.Site) { s.Caller = s.Addr }),
		"is taken to be entered by one call alone", 0},
	{"another only caller", "begun_silently", site(anySite, func(s *plan.Site) { s.Caller++ }),
		"is taken to be entered by one call alone", 0},
	{"an only caller of the caller", "recurs",
		func(_ *testing.T, p *plan.Plan, r *plan.Routine) {
			ra := callOf(p, r)
			c := p.Calls[ra]
			c.Caller = ra
			p.Calls[ra] = c
		}, "is taken to be entered by one call alone", 0},
	{"a next call where another may come", "recurs",
		func(t *testing.T, p *plan.Plan, r *plan.Routine) {
			site(func(s *plan.Site) bool { return s.NextCall[0] == 0 },
				func(s *plan.Site) { s.NextCall[0] = callOf(p, r) })(t, p, r)
		}, "is taken for the only one that may come", 1},
	{"frame address", "loops", site(anySite, func(s *plan.Site) { s.Offset += 8 }),
		"looks for the frame address", 0},
	{"frame register", "loops", site(anySite, func(s *plan.Site) { s.Base ^= 1 }),
		"looks for the frame address", 0},
	{"frame slot", "loops", site(anySite, func(s *plan.Site) { s.Slot = true }),
		"looks for the frame address", 0},
	{"condition", "loops", site(func(s *plan.Site) bool { return s.Condition < plan.NoCondition },
		func(s *plan.Site) { s.Condition ^= 1 }), "asks for condition", 0},
	{"class", "loops", site(anySite, func(s *plan.Site) { s.Stepped = !s.Stepped }),
		"single-stepped", 0},
	{"address", "loops", site(anySite, func(s *plan.Site) { s.Addr++ }), "sits on no instruction",
		0},
	{"instruction", "loops", site(anySite, func(s *plan.Site) { s.Insn = 1000 }),
		"is of no instruction", 0},
	{"bias", "dense", site(func(s *plan.Site) bool { return s.Capture != nil },
		func(s *plan.Site) { c := *s.Capture; c.Bias++; s.Capture = &c }),
		"captures nothing that decides its switch", 0},
	{"case on the wrong way", "dense",
		site(func(s *plan.Site) bool { return s.Capture != nil },
			func(s *plan.Site) { c := *s.Capture; c.Taken = !c.Taken; s.Capture = &c }),
		"two probe-free routes to the same place", 2},
	{"a value that is not captured", "asks",
		value(func(c *plan.Capture) *plan.Capture { return nil }),
		"two probe-free routes to the same place", 2},
	{"the value of another place", "asks",
		value(func(c *plan.Capture) *plan.Capture { c.Operand.Disp -= 4; return c }),
		"is taken to decide a jump that depends on something else", 0},
	{"a jump that asks nothing", "asks",
		value(func(c *plan.Capture) *plan.Capture { c.Jumps = append(c.Jumps, 1); return c }),
		"is taken to decide a jump that depends on something else", 0},
	{"a jump that is not decided", "asks",
		value(func(c *plan.Capture) *plan.Capture { c.Jumps = c.Jumps[1:]; return c }),
		"routes part and meet again without an event", 1},
	{"a value that is overwritten", "asks", func(t *testing.T, p *plan.Plan, r *plan.Routine) {
		value(func(c *plan.Capture) *plan.Capture {
			c.Jumps = append(c.Jumps, asksLast(r))
			return c
		})(t, p, r)
	}, "may be overwritten before a jump", 1},
	{"a callee without an event that is begun anew", "begun_silently",
		without(func(r *plan.Routine, b int) bool { return !calls(&r.Blocks[b]) }),
		"a new activation may be taken for one that goes on", 1},
	{"the value of another register", "asks_reg",
		value(func(c *plan.Capture) *plan.Capture { c.Operand.Reg = 6; return c }),
		"is taken to decide a jump that depends on something else", 0},
	{"the value of no register", "asks_reg",
		value(func(c *plan.Capture) *plan.Capture { c.Operand.Reg = 4; return c }),
		"captures nothing that decides its switch", 0},
	{"a register that is overwritten", "asks_reg",
		func(t *testing.T, p *plan.Plan, r *plan.Routine) {
			value(func(c *plan.Capture) *plan.Capture {
				c.Jumps = append(c.Jumps, asksLast(r))
				return c
			})(t, p, r)
		}, "may be overwritten before a jump", 1},
	{"one round of a loop", "asks_loop", func(t *testing.T, p *plan.Plan, r *plan.Routine) {
		value(func(c *plan.Capture) *plan.Capture {
			c.Jumps = append(c.Jumps, countedLoop(r))
			return c
		})(t, p, r)
	}, "of which it decides one round", 1},
	{"nothing of a loop's limit", "adds_up",
		site(func(s *plan.Site) bool { return captures(s, plan.LoopRegisters) },
			func(s *plan.Site) { s.Capture = nil }),
		"no captured value decides what the counter of a loop begins with", 1},
	{"another limit of a loop", "adds_up", reading(func(x *plan.Registers) { x.Reg = 9 }),
		"no captured value decides what the counter of a loop begins with", 1},
	{"half of what a loop has to do", "adds_up",
		reading(func(x *plan.Registers) { x.Minus = plan.NoRegister }),
		"no captured value decides what the counter of a loop begins with", 1},
	{"the stack pointer", "adds_up", reading(func(x *plan.Registers) { x.Reg = 4 }),
		"one that its site cannot record", 1},
	{"another beginning of a loop", "scans", reading(func(x *plan.Registers) { x.Reg = 6 }),
		"no captured value decides what the counter of a loop begins with", 1},
	{"another end of a loop", "scans", func(t *testing.T, _ *plan.Plan, r *plan.Routine) {
		s := r.Site(lastReading(r))
		c := *s.Capture
		c.Registers.Reg = 6
		s.Capture = &c
	}, "does not decide what the counter of a loop ends with", 1},
	{"nothing of a loop's end", "scans",
		func(t *testing.T, p *plan.Plan,
			r *plan.Routine) {
			r.Site(lastReading(r)).Capture = nil
		}, "does not decide what the counter of a loop ends with", 1},
	{"no event behind a loop", "scans",
		func(t *testing.T, p *plan.Plan, r *plan.Routine) { withoutProbe(p, r, lastReading(r)) },
		"two probe-free routes to the same place", 2},
	{"depth", "loops", call(func(p *plan.Plan,
		at uint64) {
		c := p.Calls[at]
		c.Depth += 8
		p.Calls[at] = c
	}), "frame at the call", 0},
	{"after an event", "loops",
		call(func(p *plan.Plan,
			at uint64) {
			c := p.Calls[at]
			c.AfterEvent = true
			p.Calls[at] = c
		}), "callers are followed no further", 1},
	{"not after an event", "dense",
		call(func(p *plan.Plan,
			at uint64) {
			c := p.Calls[at]
			c.AfterEvent = false
			p.Calls[at] = c
		}), "comes after an event, and is taken not to", 0},
	{"a call that is not in the table", "loops",
		call(func(p *plan.Plan, at uint64) { delete(p.Calls, at) }), "in the table of calls: false",
		0},
	{"a call that is none", "loops",
		call(func(p *plan.Plan, at uint64) { p.Calls[at+1] = plan.Call{} }), "of no call", 0},
}

// TestBrokenPlansAreFound, with the routine and the routes that no event distinguishes.
func TestBrokenPlansAreFound(t *testing.T) {
	c := compile(t, `#include "kinds.c"`+"\nasm("+strconv.Quote(more)+");", "-O2", "-Itestdata")
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			p := planned(t, c, planner.Options{Complete: true})
			prove(t, p)
			b.breaks(t, p, routine(t, p, b.routine))
			faults := verify.Plan(p)
			for _, f := range faults {
				if strings.Contains(f.What, b.what) &&
					(f.Routine == b.routine || f.Routine == "") && len(f.Ways) == b.ways {
					if strings.HasPrefix(f.What, "two probe-free routes") {
						meet(t, f.Ways[0], f.Ways[1])
					}
					return
				}
			}
			t.Errorf("want %q of %s with %d ways, found %v", b.what, b.routine, b.ways, faults)
		})
	}
}

// meet fails unless two ways are different, from one event or entry, to one place.
func meet(t *testing.T, a, b verify.Way) {
	t.Helper()
	if a[0] != b[0] || a[len(a)-1] != b[len(b)-1] || slices.Equal(a, b) {
		t.Errorf("%x and %x are not two ways from one place to another", a, b)
	}
}
