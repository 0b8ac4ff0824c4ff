//go:build linux && cgo

package decoder_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// A drawing is a program drawn at random, as it is written down in assembly language. Whatever can
// be drawn is a program that could be: its frames are right, and its unwind information is.
type drawing struct {
	*rapid.T
	text, data, lsda strings.Builder
	routines         int
	r                *drawnRoutine // the one that is being drawn
}

// A drawnRoutine is what its blocks have to agree on.
type drawnRoutine struct {
	id     int
	frame  drawnFrame
	blocks int
	sites  []string // entries of its call-site table
	tables int
	asked  int
}

// A drawnFrame is how a routine keeps its frame.
type drawnFrame struct {
	name         string
	enter, leave string
	// where the frame address is at a call is fixed, so that arguments may be pushed
	known bool
	place string // in it
}

var drawnFrames = []drawnFrame{
	{"none", "", "", true, "-8(%rsp)"},
	{"push", "push %rbx\n.cfi_adjust_cfa_offset 8", "pop %rbx\n.cfi_adjust_cfa_offset -8", true,
		"-8(%rsp)"},
	{"sub", "sub $24, %rsp\n.cfi_adjust_cfa_offset 24", "add $24, %rsp\n.cfi_adjust_cfa_offset -24",
		true, "8(%rsp)"},
	{"rbp", "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n" +
		".cfi_def_cfa_register 6\nsub $32, %rsp",
		"leave\n.cfi_def_cfa 7, 8", false, "-8(%rbp)"},
	{"alloca", "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset 6, -16\nmov %rsp, %rbp\n" +
		".cfi_def_cfa_register 6\nsub %rax, %rsp\nand $-16, %rsp",
		"leave\n.cfi_def_cfa 7, 8", false, "-8(%rbp)"},
}

// fillers are instructions of each class: emulated, single-stepped, never probed; and stores to the
// frame and elsewhere. Neither they nor the questions ask for all of rax, or for rdx, as landing
// pads do that no call returns to.
var fillers = []string{"mov %eax, %ecx", "nop", "vpxor %xmm0, %xmm0, %xmm0", "mov %eax, PLACE",
	"mov %al, 2+PLACE", "mov %rcx, 16(%rdi)", "mov %eax, 4+PLACE", "add $8, %r11d"}

// questions are what jumps ask, of a place in the frame or of a register, one list each.
var questions = [][]string{
	{"cmpl $3, PLACE", "mov PLACE, %eax\nand $2, %eax\ntest %eax, %eax",
		"mov PLACE, %esi\nshr $1, %esi\nand $3, %esi\ncmp $2, %esi", "testb $1, PLACE"},
	{"cmp $16, %r11d", "test $8, %r11b", "mov %r11d, %eax\nand $24, %eax\ncmp $8, %eax",
		"test %r11d, %r11d", "mov %r11d, %esi\nshr $4, %esi\ncmp $2, %esi"},
}

// drawProgram draws a program.
func drawProgram(t *rapid.T) string {
	d := &drawing{T: t, routines: rapid.IntRange(1, 6).Draw(t, "routines")}
	for i := range d.routines {
		d.routine(i)
	}
	return ".text\n" + d.text.String() + ".section .data.rel.ro, \"aw\"\n" + d.data.String() +
		".section .gcc_except_table, \"a\"\n" + d.lsda.String()
}

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.text, format+"\n", args...) }

// inFrame writes lines about the place in the frame.
func (d *drawing) inFrame(lines string) {
	d.line("%s", strings.ReplaceAll(lines, "PLACE", d.r.frame.place))
}

func (d *drawing) pick(what string, n int) int { return rapid.IntRange(0, n-1).Draw(d.T, what) }

// rarely is true once in n times, and false when drawings shrink.
func (d *drawing) rarely(what string, n int) bool { return d.pick(what, n) == n-1 }

func (d *drawing) routine(id int) {
	r := &drawnRoutine{id: id, frame: drawnFrames[d.pick("frame", len(drawnFrames))],
		blocks: 1 + d.pick("blocks", 9)}
	d.r = r
	switch linkage := d.pick("linkage", 3); {
	case id == 0 || linkage == 1:
		d.line(".globl r%d", id)
	case linkage == 2:
		fmt.Fprintf(&d.data, ".quad r%d\n", id)
	}
	d.line(".type r%d, @function\nr%d:\nentry%d: .cfi_startproc\n.cfi_lsda 0x1b, lsda%d", id, id,
		id, id)
	if r.frame.enter != "" {
		d.line("%s", r.frame.enter)
	}
	for b := range r.blocks {
		d.line("block%d_%d:", id, b)
		d.block(b == r.blocks-1)
	}
	d.line(".cfi_endproc\n.size r%d, .-r%d", id, id)
	fmt.Fprintf(&d.lsda, "lsda%d: .byte 0xff, 0xff, 1\n.uleb128 end%d - begin%d\nbegin%d:\n"+
		"%send%d:\n", id, id, id, id, strings.Join(r.sites, ""), id)
}

func (d *drawing) target() string {
	return fmt.Sprintf("block%d_%d", d.r.id, d.pick("target", d.r.blocks))
}

// block draws what a block does and how it ends. The last one must not run on.
func (d *drawing) block(last bool) {
	for range d.pick("fill", 3) {
		d.inFrame(fillers[d.pick("filler", len(fillers))])
	}
	const leaving, goingOn = 4, 18
	kind := d.pick("end", leaving+goingOn)
	if last {
		kind %= leaving
	}
	switch kind {
	case 0:
		d.leave("ret")
	case 1:
		d.leave("jmp " + d.callee(true))
	case 2:
		d.line("jmp %s", d.target())
	case 3:
		d.abandon()
	case 4:
		d.line("test %%edi, %%edi")
		d.line("j%s %s", []string{"e", "ne", "l", "a", "s"}[d.pick("condition", 5)], d.jumpTarget())
	case 5, 6, 7:
		d.call(d.callee(false))
	case 8:
		d.call("_setjmp@PLT")
	case 9:
		d.tableJump()
	case 10, 11:
		d.line("je %s", d.target())
	case 12, 13, 14, 15, 16:
		d.ask()
	case 17, 18, 19, 20:
		d.count()
	} // 21: runs on
}

// ask asks one thing after another of the same place, mostly, and does something or not, or goes
// elsewhere.
func (d *drawing) ask() {
	of := d.pick("of", len(questions))
	for range 2 + d.pick("questions", 4) {
		list := questions[of]
		if d.rarely("of the other", 6) {
			list = questions[1-of]
		}
		d.inFrame(list[d.pick("question", len(list))])
		answer := []string{"e", "ne", "b", "ge", "s", "g"}[d.pick("answer", 6)]
		if d.rarely("elsewhere", 5) {
			d.line("j%s %s", answer, d.target())
			continue
		}
		d.r.asked++
		d.line("j%s asked%d_%d", answer, d.r.id, d.r.asked)
		switch d.pick("do", 8) {
		case 6:
			d.call(d.callee(false))
		case 7:
			d.line("jmp %s", d.target())
		default:
			d.inFrame(fillers[d.pick("filler", len(fillers))])
		}
		d.line("asked%d_%d:", d.r.id, d.r.asked)
	}
}

// counters are what may be counted with: how it begins, what each round adds and how it ends.
var (
	beginnings = []string{"", "xor %r8d, %r8d", "mov $16, %r9d", "lea 32(%r8), %r9",
		"lea (%r8,%r10,4), %r9", "mov %r10d, %r10d\nlea (%r8,%r10,8), %r9", "mov %r9, %r8",
		"mov %r11, %r8\nadd $8, %r8", "mov %r10d, %r8d",
		"shl $2, %r10\nmov %r10, %r9\nadd %r8, %r9", "mov 8(%rdi), %r8",
		"lea 24(%rsp), %r9\nmov %rdi, -8(%rsp)\nmov %rsp, %r8",
		"lea (%r10,%r11), %r8\nmov %rdi, -8(%rsp)\nlea 16(%r10,%r11), %r9"}
	steps = []string{"movslq %r10d, %r9\nadd $1, %r8", "add $1, %r8", "add $8, %r8",
		"sub $4, %r8", "lea 4(%r8), %r8", "inc %r8d", "dec %r9d", "add $4, %r8d",
		"mov %r8, %r11\nadd $1, %r8"}
	endings = []string{"cmp %r9, %r8", "cmp %r8, %r9", "cmp %r9d, %r8d", "test %r8, %r8",
		"testb $1, (%r8)", "cmp $32, %r8", "cmp $0, %r8d", "test %r9d, %r9d"}
	repeated = []string{"ne", "ne", "ne", "e", "b", "ge"}
)

// count draws a loop of one block that counts.
func (d *drawing) count() {
	d.line("%s", beginnings[d.pick("beginning", len(beginnings))])
	if d.rarely("guard", 3) {
		d.line("test %%r10d, %%r10d\nje %s", d.target())
	}
	d.r.asked++
	d.line("again%d_%d:", d.r.id, d.r.asked)
	d.inFrame(fillers[d.pick("filler", len(fillers))])
	d.line("%s", steps[d.pick("step", len(steps))])
	d.line("%s", endings[d.pick("ending", len(endings))])
	d.line("j%s again%d_%d", repeated[d.pick("repeated", len(repeated))], d.r.id, d.r.asked)
	if d.rarely("behind", 2) {
		d.line("cmp $3, %%r8\nje %s", d.target())
	}
}

// leave leaves the frame, and the routine by an instruction.
func (d *drawing) leave(how string) {
	d.line(".cfi_remember_state")
	if d.r.frame.leave != "" {
		d.line("%s", d.r.frame.leave)
	}
	d.line("%s\n.cfi_restore_state", how)
}

// abandon ends a block that control does not leave by itself.
func (d *drawing) abandon() {
	if d.rarely("trap", 3) {
		d.line("ud2")
	} else {
		d.call([]string{"abort@PLT", "__cxa_throw@PLT"}[d.pick("who", 2)])
	}
}

// jumpTarget is a block or, where there is no frame to leave, another routine.
func (d *drawing) jumpTarget() string {
	if d.r.frame.enter == "" && d.rarely("conditional tail", 4) {
		return fmt.Sprintf("entry%d", d.pick("routine", d.routines))
	}
	return d.target()
}

// callee is what is called, or jumped to: a routine, external code, code known to be
// harmless, or anything.
func (d *drawing) callee(jump bool) string {
	switch d.pick("callee", 6) {
	case 3:
		return "qsort@PLT"
	case 4:
		if jump {
			return "*%rdx"
		}
		return []string{"*%rdx", "*8(%rdi)"}[d.pick("pointer", 2)]
	case 5:
		return "memcpy@PLT"
	}
	return fmt.Sprintf("entry%d", d.pick("routine", d.routines))
}

// call calls, perhaps with an argument pushed, and perhaps with a landing pad.
func (d *drawing) call(callee string) {
	push := d.r.frame.known && d.rarely("argument", 5)
	if push {
		d.line("push %%rsi\n.cfi_adjust_cfa_offset 8")
	}
	n := len(d.r.sites)
	d.line("call%d_%d: call %s\nback%d_%d:", d.r.id, n, callee, d.r.id, n)
	pad := "0"
	if !push && d.rarely("pad", 6) {
		pad = fmt.Sprintf("%s - r%d", d.target(), d.r.id)
	}
	d.r.sites = append(d.r.sites, fmt.Sprintf(".uleb128 call%d_%d - r%d, back%d_%d - call%d_%d, "+
		"%s, 0\n", d.r.id, n, d.r.id, d.r.id, n, d.r.id, n, pad))
	if push {
		d.line("add $8, %%rsp\n.cfi_adjust_cfa_offset -8")
	}
}

// tableJump jumps through a table, whose index is checked or masked.
func (d *drawing) tableJump() {
	n := 1 << d.pick("cases", 4)
	table := fmt.Sprintf("table%d_%d", d.r.id, d.r.tables)
	d.r.tables++
	if d.rarely("mask", 3) {
		d.line("and $%d, %%edi", n-1)
	} else {
		d.line("cmp $%d, %%edi\nja %s", n-1, d.target())
	}
	d.line("mov %%edi, %%eax\nlea %s(%%rip), %%rdx\nmovslq (%%rdx,%%rax,4), %%rax\nadd %%rdx, "+
		"%%rax\njmp *%%rax", table)
	d.line(".section .rodata\n.balign 4\n%s:", table)
	for range n {
		d.line(".long %s - %s", d.target(), table)
	}
	d.line(".text")
}
