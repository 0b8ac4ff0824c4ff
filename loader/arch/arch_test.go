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
		if !ok || a.RegisterName(n) != want {
			t.Errorf("register %d of DWARF is %s, %v, want %s", dwarf, a.RegisterName(n), ok, want)
		}
	}
	for _, dwarf := range []int8{0, 10, 16, -1, -3} {
		if n, ok := a.FrameRegister(dwarf); ok {
			t.Errorf("register %d of DWARF is %s", dwarf, a.RegisterName(n))
		}
	}
	sp, fp := a.RegisterName(a.StackPointer()), a.RegisterName(a.FramePointer())
	if sp != "rsp" || fp != "rbp" {
		t.Errorf("stack pointer %s, frame pointer %s", sp, fp)
	}
}

func TestReturnAddressLiesBelowTheFrame(t *testing.T) {
	const cfa = 0x7ffc1000
	at := arch.Native.ReturnAddressAt(cfa)
	if at != cfa-8 || arch.Native.CFAOfReturnAt(at) != cfa {
		t.Errorf("the return address of %x at %x, back %x", cfa, at, arch.Native.CFAOfReturnAt(at))
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
	if a, err := arch.Of(elf.EM_X86_64); err != nil || a.Name() != "amd64" {
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
	fmt.Println(a.Name(), a.RegisterName(n))
	_, err = arch.Of(elf.EM_AARCH64)
	fmt.Println(err)
	// Output:
	// amd64 rsp
	// it is for EM_AARCH64: only EM_X86_64 is supported
}
