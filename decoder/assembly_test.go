//go:build linux && cgo

package decoder_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/loader/plan"
	"wpptrace/loader/plan/planner"
	"wpptrace/loader/plan/verify"
)

// assemble plans a program in assembly language. Its files are in dir.
func assemble(dir, source string) (*plan.Plan, error) {
	object, program := filepath.Join(dir, "program.o"), filepath.Join(dir, "program.so")
	as := exec.Command("as", "-o", object)
	as.Stdin = strings.NewReader(source)
	for _, c := range []*exec.Cmd{as, exec.Command("ld", "-shared", "-o", program, object)} {
		if b, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", c.Path, err, b)
		}
	}
	return makePlan(program, planner.Options{Complete: true})
}

// last is another routine behind one.
const last = `
	pad:	jmp last
		.cfi_endproc
		.type last, @function
	last:	.cfi_startproc
		nop
		ret`

// found are programs, drawn at random at first, that came out wrong, by what was wrong with them.
// Labels that begin with throws are calls with a landing pad.
var found = []struct {
	name   string
	habits habits
	walk   func(t *rapid.T, p *plan.Plan, h habits) *process
	source string
}{
	// What is called back may come from the loop, or from the caller after the end: no event said
	// which.
	{"callback or end", habits{end: 50, callback: 2}, walkExactly, `
		push %rbx
		.cfi_def_cfa_offset 16
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
	2:	pop %rbx
		.cfi_def_cfa_offset 8
		ret
	pad:`},
	// A landing pad that ordinary flow comes to, in a new activation, was taken for an exception.
	{"landing pad in a new activation", habits{end: 50}, walkExactly, `
		push %rbx
		.cfi_def_cfa_offset 16
	pad:	mov %eax, %ecx
		.cfi_remember_state
		pop %rbx
		.cfi_def_cfa_offset 8
		ret
		.cfi_restore_state
	throws:	call qsort@PLT
	thrown:	jmp pad`},
	// What follows setjmp, come to past it, was taken for its second return.
	{"past setjmp", habits{end: 50}, walkExactly, `
	1:	mov %eax, %ecx
		je 2f
		call _setjmp@PLT
	2:	mov %eax, %ecx
		jmp 1b
	pad:`},
	// A landing pad whose own call throws to it was taken for an exception.
	{"landing pad of its own call", habits{end: 50, throw: 3}, walkExactly, `
		call *%rdx
	pad:	mov %eax, %ecx
	throws:	call __cxa_throw@PLT
	thrown:`},
	// An exception and ordinary flow came to the same event.
	{"landing pad behind its call", habits{end: 50, throw: 3}, walkExactly, `
		nop
	throws:	call qsort@PLT
	thrown:	mov %eax, %ecx
	pad:	mov %eax, %ecx
		ret`},
	// A thread that died at the first instruction of a block was said to have run all of it, twice.
	{"death at a block's first instruction", habits{end: 50}, walkExactly, `
		call _setjmp@PLT
	pad:	call abort@PLT`},
	// A tail jump out of what was called from a frame of unknown size was taken for a call by an
	// outer activation of the same caller.
	{"tail jump below a frame of unknown size", habits{end: 50, callback: 3}, walkExactly, `
		push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub %rax, %rsp
		nop
		call *%rdx
		call jumps
	pad:	nop
		leave
		.cfi_def_cfa 7, 8
		ret
		.cfi_endproc
		.type jumps, @function
	jumps:	.cfi_startproc
		nop
		jmp last
		.cfi_endproc
		.type last, @function
	last:	.cfi_startproc
		nop
		ret
		.data
		.quad jumps, last
		.text`},
	// A routine that had to be left out while circles were looked for made the planner panic.
	{"left out amidst planning", habits{end: 50}, walkExactly, `
	throws:	call jumps
	thrown:
	pad:	mov %eax, %ecx
		jmp f
		.cfi_endproc
		.type jumps, @function
	jumps:	.cfi_startproc
		jmp qsort@PLT
		.cfi_endproc
		.type calls, @function
	calls:	.cfi_startproc
		mov %eax, %ecx
		jmp f
		.cfi_endproc
		.type other, @function
	other:	.cfi_startproc
		ret
		.data
		.quad other
		.text`},
	// An exception that came to an activation which had stood there since before the thread was met
	// was taken for a call.
	{"landing pad beneath what was met", habits{end: 50, callback: 2, throw: 3}, walkFromTheMiddle, `
		push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
	pad:
	throws:	call abort@PLT
	thrown:`},
	// A tail jump out of an activation whose caller is not known was taken for a call.
	{"tail jump with an unknown caller", habits{end: 50}, walkFromTheMiddle, `
		push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub %rax, %rsp
		call jumps
	pad:	je 3f
		nop
	3:	leave
		.cfi_def_cfa 7, 8
		ret
		.cfi_endproc
		.type jumps, @function
	jumps:	.cfi_startproc
		dec %edi
		jne jumps
		jmp f
		.cfi_endproc
		.type unused, @function
	unused:	.cfi_startproc
		ret`},
	// A handler that came before the first event of what a frame of unknown size had called: that
	// was taken for the callee of an outer activation.
	{"handler before the first event above a frame of unknown size", habits{end: 50, callback: 2, handler: 10}, walkExactly, `
		push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub %rax, %rsp
		and $-16, %rsp
		call *8(%rdi)
		nop
		mov %eax, %ecx
		leave
		.cfi_def_cfa 7, 8
		ret
	pad:`},
	// A routine that was jumped to out of one that had had an event before the thread was met: its
	// caller was taken for a new activation.
	{"tail jump out of what was not met, beneath a new caller", habits{end: 50, callback: 2}, walkFromTheMiddle, `
		push %rbx
		.cfi_def_cfa_offset 16
		call jumps
	pad:	je 3f
		nop
	3:	pop %rbx
		.cfi_def_cfa_offset 8
		ret
		.cfi_endproc
		.type jumps, @function
	jumps:	.cfi_startproc
		call *%rdx
		jmp last
		.cfi_endproc
		.type last, @function
	last:	.cfi_startproc
		jmp qsort@PLT`},
	// What was lost had jumped on to the routine that had called it, and so on: all of these were
	// taken for new activations.
	{"tail jump out of what was lost, to its caller's routine", habits{end: 50, callback: 6}, walkWithLosses, `
		call jumps
	pad:	mov %eax, %ecx
		jmp jumps
		.cfi_endproc
		.type jumps, @function
	jumps:	.cfi_startproc
		jmp *%rdx`},
	// A call from a frame of unknown size, after a recursive one, was taken for one by the inner
	// activation.
	{"call from a frame of unknown size after recursion", habits{end: 50, callback: 3}, walkExactly, `
	self:	push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
	1:	je 2f
	throws:	call ends
	thrown:
	pad:	mov %eax, %ecx
		call self
		jmp 1b
	2:	leave
		.cfi_def_cfa 7, 8
		ret
		.cfi_endproc
		.globl other
		.type other, @function
	other:
	ends:	.cfi_startproc
		ret`},
	// What a handler on a stack above had interrupted, and had had no event yet, was taken for a
	// callee of the handler's frame of unknown size.
	{"handler on a stack above what it interrupts", habits{end: 50, handler: 10, altStack: 1}, walkExactly, `
	self:	push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub %rax, %rsp
		je 1f
		nop
	1:	je 2f
		leave
		.cfi_remember_state
		.cfi_def_cfa 7, 8
		ret
		.cfi_restore_state
	2:	call self
		je 3f
		nop
	3:
	pad:	leave
		.cfi_def_cfa 7, 8
		ret`},
	// An exception that came to an activation which had stood at a call since before the thread was
	// met was taken for the call's return.
	{"landing pad that the call's return leads to", habits{end: 50, callback: 3, throw: 3}, walkFromTheMiddle, `
	self:	push %rbx
		.cfi_def_cfa_offset 16
		call *%rdx
	throws:	call self
	thrown:	je 1f
		call __cxa_throw@PLT
	1:	je 2f
		nop
	2:
	pad:	pop %rbx
		.cfi_def_cfa_offset 8
		ret`},
	// What was caught by external code, thrown out of a call that had not been
	// announced, was taken to have come later.
	{"thrown out of an unannounced call", habits{end: 50, callback: 2, catch: 2}, walkExactly, `
		push %rbx
		.cfi_def_cfa_offset 16
		je 1f
		call passes
	1:	call qsort@PLT
		pop %rbx
		.cfi_def_cfa_offset 8
	pad:	ret
		.cfi_endproc
		.type passes, @function
	passes:	.cfi_startproc
		call fails
		add $1, %eax
		ret
		.cfi_endproc
		.type fails, @function
	fails:	.cfi_startproc
		je 1f
		nop
	1:	call *(%rsi)
		ret`},
	// What was begun anew, when what a call had been left by was caught, was taken to be the loop
	// going on without having come to the call.
	{"a new activation beside a call", habits{end: 50, callback: 2, catch: 2}, walkExactly, `
	again:	cmp $3, %edi
		jg 1f
		nop
	1:	cmp $3, %esi
		jge 3f
	2:	push %rsi
		.cfi_adjust_cfa_offset 8
		call *%rdx
		add $8, %rsp
		.cfi_adjust_cfa_offset -8
	3:	cmp $3, %edi
		je 4f
		mov %eax, %ecx
	4:	cmp $2, %esi
		jb 2b
	pad:	jmp again`},
	// What began where an activation had stood whose callee had been left by an exception was taken
	// for what that activation had jumped to behind its call.
	{"a new activation in the place of one that would have jumped to it", habits{end: 50, callback: 2, catch: 2}, walkExactly, `
		je 1f
		call stops
	1:
	pad:	jmp last
		.cfi_endproc
		.type stops, @function
	stops:	.cfi_startproc
		je 1f
		call abort@PLT
	1:	ret
		.cfi_endproc
		.type last, @function
	last:	.cfi_startproc
		nop
		ret
		.data
		.quad last
		.text`},
	// Where it was interrupted between the two, what was left to do could not be known behind.
	{"interrupted between copies of the stack pointer", habits{end: 50, handler: 4}, walkExactly, `
		nop
		sub $88, %rsp
		.cfi_def_cfa_offset 96
		mov $16, %ecx
	3:	movb $0, (%rdi)
		sub $1, %ecx
		jne 3b
		lea 64(%rsp), %rdx
		mov %rdi, 8(%rsp)
		mov %rsp, %rax
	1:	movb $0, (%rdi)
		add $8, %rax
		cmp %rdx, %rax
		jne 1b
		add $88, %rsp
		.cfi_def_cfa_offset 8
		ret` + last},
	{"interrupted between what only sums show", habits{end: 50, handler: 4}, walkExactly, `
		nop
		mov $16, %ecx
	3:	movb $0, (%rdi)
		sub $1, %ecx
		jne 3b
		lea (%r10,%r11), %r8
		mov %rdi, -8(%rsp)
		lea 16(%r10,%r11), %r9
	1:	movb $0, (%rdi)
		add $1, %r8
		cmp %r9, %r8
		jne 1b
		ret` + last},
	// More loops on one way than were foreseen.
	{"twenty loops on a way", habits{end: 50, handler: 9}, walkExactly, `
		nop
		.rept 20
		mov $6, %ecx
	3:	movb $0, (%rdi)
		add $1, %rdi
		sub $1, %ecx
		jne 3b
		.endr
		ret` + last},
	// What a register holds amid a round is not what the loop leaves in it.
	{"interrupted where a register holds more for a while", habits{end: 50, handler: 3}, walkExactly, `
		nop
		lea 8(%r10), %r9
		mov $16, %ecx
	3:	add $1, %r9
		movb $0, (%rdi)
		sub $1, %r9
		sub $1, %ecx
		jne 3b
		lea 40(%r10), %r8
	1:	movb $0, (%rdi)
		add $8, %r9
		cmp %r8, %r9
		jne 1b
		ret` + last},
	// What had been met in its middle jumped on, by external code, to what returns where
	// it would have: its caller, not known, was taken to have called anew.
	{"a jump on from what was met in its middle", habits{end: 50, callback: 3}, walkWithLosses, `
		push %rbp
		.cfi_def_cfa_offset 16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub $32, %rsp
	1:	cmpl $3, -8(%rbp)
		js 3f
		jmp qsort@PLT
	2:	call last
	3:	mov %rcx, 16(%rdi)
		call *%rdx
		test %eax, %eax
		jge 4f
		jmp 1b
	4:	js 2b
		call last
		call _setjmp@PLT
		leave
		.cfi_def_cfa 7, 8
		jmp *%rdx
		.cfi_endproc
		.type last, @function
	last:	.cfi_startproc
		ret
		.data
		.quad f
		.text`},
	// What was begun anew, when what a call had been left by was caught, was taken for an exception
	// that led to the call again.
	{"a landing pad that the call of a caller without events leads to as well", habits{end: 50, callback: 3, throw: 3, catch: 2}, walkExactly, `
		call self
	pad:	ret
		.cfi_endproc
		.type self, @function
	self:	.cfi_startproc
		.cfi_lsda 0x1b, lsda2
		push %rbp
		.cfi_def_cfa_offset 16
		.cfi_offset 6, -16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		sub %rax, %rsp
	3:	mov %rcx, 16(%rdi)
	4:	call abort@PLT
	5:	.section .gcc_except_table, "a"
	lsda2:	.byte 0xff, 0xff, 1
		.uleb128 7f - 6f
	6:	.uleb128 4b - self, 5b - 4b, 3b - self, 0
	7:	.text`},
	// A value distinguished two ways that met again, on which a loop began with other things.
	{"ways that meet before a loop", habits{end: 50}, walkExactly, `
		push %rbp
		.cfi_def_cfa_offset 16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		xor %eax, %eax
		cmpl $5, -4(%rbp)
		jg 1f
		add $7, %eax
	1:	cmpl $3, -4(%rbp)
		mov $10, %ecx
		jg 3f
		mov %esi, %ecx
	3:	add $1, %eax
		dec %ecx
		jne 3b
		pop %rbp
		.cfi_def_cfa 7, 8
		ret` + last},
	// On each way the loop's limit was the same distance away, but on one way it could not be
	// followed.
	{"ways that meet before a loop with what they all say", habits{end: 50}, walkExactly, `
		cmp $8, %edi
		jg 1f
		inc %rdx
	1:	cmp $16, %edi
		je 2f
		mov %r8, %r9
	2:	cmp $24, %edi
		jae 3f
		lea 1(%r8), %r9d
	3:	decl (%rdi)
		lea 4(%r9), %r10
	4:	add %r10, %rdx
		inc %r9
		cmp %r10, %r9
		jne 4b
		cmp $32, %edi
		jb 5f
		inc %rdx
	5:	ret` + last},
	// The same of what a loop ended with.
	{"ways that meet behind a loop", habits{end: 50}, walkExactly, `
		push %rbp
		.cfi_def_cfa_offset 16
		mov %rsp, %rbp
		.cfi_def_cfa_register 6
		xor %eax, %eax
		cmpl $5, -4(%rbp)
		jg 1f
		add $7, %eax
	1:	mov $64, %ecx
	3:	add $8, %rcx
		testb $1, (%rdi,%rcx)
		jne 3b
		cmpl $3, -4(%rbp)
		jg 4f
		mov %rsi, %rcx
	4:	test %edx, %edx
		je 5f
		add $1, %eax
	5:	pop %rbp
		.cfi_def_cfa 7, 8
		ret` + last},
}

// TestFoundPrograms walks the programs that came out wrong.
func TestFoundPrograms(t *testing.T) {
	for _, f := range found {
		t.Run(f.name, func(t *testing.T) {
			source := ".text\n.globl f\n.type f, @function\nf: .cfi_startproc\n.cfi_lsda 0x1b, " +
				"lsda\n" + f.source + "\n.cfi_endproc\n" +
				".section .gcc_except_table, \"a\"\nlsda: .byte 0xff, 0xff, 1\n.uleb128 2f - 1f\n" +
				"1:\n"
			if strings.Contains(f.source, "throws:") {
				source += ".uleb128 throws - f, thrown - throws, pad - f, 0\n"
			}
			p, err := assemble(t.TempDir(), source+"2:\n")
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range verify.Plan(p) {
				t.Error(f)
			}
			rapid.Check(t, func(t *rapid.T) { f.walk(t, p, f.habits) })
		})
	}
}
