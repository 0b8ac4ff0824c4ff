package arch_test

import (
	"debug/elf"
	"fmt"
	"testing"

	"wpptrace/loader/arch"
)

func TestFrameRegisters(t *testing.T) {
	a := arch.Native
	for dwarf, want := range map[int8]string{7: "rsp", 6: "rbp"} {
		n, ok := a.FrameRegister(dwarf)
		if !ok || a.RegisterName(int8(n), 8) != want {
			t.Errorf("register %d of DWARF is %s, %v, want %s", dwarf, a.RegisterName(int8(n), 8),
				ok, want)
		}
	}
	for _, dwarf := range []int8{0, 10, 16, -1, -3} {
		if n, ok := a.FrameRegister(dwarf); ok {
			t.Errorf("register %d of DWARF is %s", dwarf, a.RegisterName(int8(n), 8))
		}
	}
	sp, fp := a.RegisterName(int8(a.StackPointer()), 8), a.RegisterName(int8(a.FramePointer()), 8)
	if sp != "rsp" || fp != "rbp" {
		t.Errorf("stack pointer %s, frame pointer %s", sp, fp)
	}
}

func TestReturnAddressLiesBelowTheFrame(t *testing.T) {
	const cfa = 0x7ffc1000
	if got := arch.Native.CFAOfReturnAt(cfa - 8); got != cfa {
		t.Errorf("the CFA of a return address at %x is %x, want %x", cfa-8, got, cfa)
	}
}

// The low bytes of a register have names of their own, and ah to bh numbers.
func TestRegisterNames(t *testing.T) {
	for _, test := range []struct {
		number int8
		bytes  uint8
		want   string
	}{
		{0, 8, "rax"}, {0, 4, "eax"}, {0, 2, "ax"}, {0, 1, "al"}, {3, 1, "bl"},
		{4, 8, "rsp"}, {4, 1, "spb"}, {7, 1, "dib"}, {15, 8, "r15"}, {15, 4, "r15l"},
		{15, 1, "r15b"}, {16, 1, "ah"}, {19, 1, "bh"},
	} {
		if got := arch.Native.RegisterName(test.number, test.bytes); got != test.want {
			t.Errorf("%d bytes of register %d: %s, want %s", test.bytes, test.number, got,
				test.want)
		}
	}
}

func TestBeginsHandler(t *testing.T) {
	const rax, rdx, rsp, rsi, rdi = 0, 2, 4, 6, 7
	begins := func(change func(r *arch.Registers)) bool {
		r := &arch.Registers{rdi: 14, rsp: 0x7000, rdx: 0x7008, rsi: 0x7008 + 304}
		change(r)
		return arch.Native.BeginsHandler(r)
	}
	if !begins(func(*arch.Registers) {}) {
		t.Error("what the kernel passes is not recognised")
	}
	for name, change := range map[string]func(r *arch.Registers){
		"no signal":               func(r *arch.Registers) { r[rdi] = 0 },
		"signal too large":        func(r *arch.Registers) { r[rdi] = 65 },
		"context elsewhere":       func(r *arch.Registers) { r[rdx] += 8 },
		"information elsewhere":   func(r *arch.Registers) { r[rsi] -= 8 },
		"a vector register count": func(r *arch.Registers) { r[rax] = 1 },
	} {
		if begins(change) {
			t.Errorf("%s: taken for a handler's beginning", name)
		}
	}
}

func TestOf(t *testing.T) {
	if a, err := arch.Of(elf.EM_X86_64); err != nil || a != arch.Native {
		t.Errorf("x86-64: %v, %v", a, err)
	}
	if _, err := arch.Of(elf.EM_AARCH64); err == nil {
		t.Error("no error for arm64")
	}
}

func ExampleOf() {
	a, err := arch.Of(elf.EM_X86_64)
	if err != nil {
		fmt.Println(err)
		return
	}
	n, _ := a.FrameRegister(7)
	fmt.Println(a.Machine(), a.RegisterName(int8(n), 8))
	_, err = arch.Of(elf.EM_AARCH64)
	fmt.Println(err)
	// Output:
	// EM_X86_64 rsp
	// it is for EM_AARCH64: only EM_X86_64 is supported
}
