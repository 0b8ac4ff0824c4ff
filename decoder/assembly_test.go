//go:build linux && cgo

package decoder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"wpptrace/loader/plan"
)

// assembled plans a program of a few routines in assembly language.
func assembled(t *testing.T, source string) *plan.Plan {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.s"), filepath.Join(dir, "program")
	if err := os.WriteFile(in, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("gcc", "-shared", "-nostdlib", "-o", out, in).CombinedOutput(); err != nil {
		t.Fatalf("assemble: %v\n%s", err, b)
	}
	p, err := makePlan(out, plan.Options{Complete: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCallbackOrEnd: a loop that calls through a pointer and whose last round ends the routine silently. What is called back may come from the loop, or from
// the caller after the end; the plan has to have a word tell them apart.
func TestCallbackOrEnd(t *testing.T) {
	p := assembled(t, `
		.text
		.globl walks, other
		.type walks, @function
		.type other, @function
	walks:	.cfi_startproc
		push %rbx
		.cfi_def_cfa_offset 16
		.cfi_offset 3, -16
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
		.cfi_endproc
		.size walks, .-walks
	other:	.cfi_startproc
		test %edi, %edi
		je 1f
		mov $1, %eax
	1:	ret
		.cfi_endproc
		.size other, .-other`)
	rapid.Check(t, func(t *rapid.T) { walkExactly(t, p, habits{callback: 2}) })
}
