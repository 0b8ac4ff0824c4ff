package recovery_test

import (
	"os/exec"
	"strings"
	"testing"

	"wpptrace/loader/image"
)

// What start-up code hands on as the program's main function is found by that, where names are
// gone.
func TestMainFunction(t *testing.T) {
	const source = `int other(void) { return 3; } int main(void) { return other(); } int (*volatile pointer)(void) = other;`
	for _, flags := range [][]string{{"-O1"}, {"-O0", "-fno-pie", "-no-pie"},
		{"-O2", "-fcf-protection=full"}, {"-static"}, {"-static-pie"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			path := compile(t, source, flags...)
			main := routine(t, recoverFile(t, path), "main")
			if b, err := exec.Command("strip", path).CombinedOutput(); err != nil {
				t.Fatalf("strip: %v\n%s", err, b)
			}
			if got := recoverFile(t, path).Main(); got == nil || got.Addr != main.Addr {
				t.Errorf("main is %v, want %x", got, main.Addr)
			}
		})
	}
	overwritten := compile(t, `void start(void) {} int taken(void) { return 3; }
		__asm__(".globl _start\n_start: lea taken(%rip), %rdi\nxor %edi, %edi\ncall start\nhlt");`, "-nostartfiles")
	if got := recoverFile(t, overwritten).Main(); got != nil {
		t.Errorf("what has been overwritten before the first call is taken for the main "+
			"function: %s", got.Name)
	}
	library := compile(t, `int other(void) { return 3; }`, "-shared", "-fPIC")
	if got := recoverFile(t, library).Main(); got != nil {
		t.Errorf("a library has a main function, %s", got.Name)
	}
	if im, err := image.OpenFile(library); err != nil || im.Entry != 0 {
		t.Errorf("the library has an entry, %x, %v", im.Entry, err)
	}
}
