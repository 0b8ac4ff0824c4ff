package arch

import (
	"debug/elf"
	"fmt"
)

// An Arch is an architecture. All methods are pure, and cost next to nothing.
type Arch interface {
	// Machine is that of ELF files.
	Machine() elf.Machine
	// RegisterName is the assembler's name of a general register, or of the low bytes of it.
	RegisterName(number int8, bytes uint8) string
	// StackPointer and FramePointer are the registers that a CFA is computed from.
	StackPointer() uint8
	FramePointer() uint8
	// FrameRegister is the stack or frame pointer by its DWARF number; ok is false for all others.
	FrameRegister(dwarf int8) (number uint8, ok bool)
	// CFAOfReturnAt is the CFA of the activation that has its return address there.
	CFAOfReturnAt(address uint64) uint64
	// BeginsHandler reports whether registers are what the kernel passes to a signal handler,
	// before its first instruction.
	BeginsHandler(regs *Registers) bool
	// Breakpoint is the byte that a probe puts in place of an instruction's first.
	Breakpoint() byte
}

// Registers are what general registers hold, by hardware number.
type Registers [16]uint64

// Native is the architecture that is traced.
var Native Arch = amd64{}

// Of returns the architecture of an ELF file. It fails where there is no implementation.
func Of(machine elf.Machine) (Arch, error) {
	if machine == Native.Machine() {
		return Native, nil
	}
	return nil, fmt.Errorf("it is for %v: only %v is supported", machine, Native.Machine())
}
