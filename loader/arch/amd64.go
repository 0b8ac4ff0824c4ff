package arch

import (
	"debug/elf"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"wpptrace/loader/x86"
)

// amd64 is x86-64 under the System V ABI of Linux.
type amd64 struct{}

func (amd64) Machine() elf.Machine { return elf.EM_X86_64 }
func (amd64) StackPointer() uint8  { return uint8(x86.RSP) }
func (amd64) FramePointer() uint8  { return uint8(x86.RBP) }
func (amd64) Breakpoint() byte     { return 0xcc } // int3

func (amd64) RegisterName(reg int8, bytes uint8) string {
	if reg >= x86.AH {
		return strings.ToLower((x86asm.AH + x86asm.Reg(reg-x86.AH)).String())
	}
	first := map[uint8]x86asm.Reg{1: x86asm.AL, 2: x86asm.AX, 4: x86asm.EAX}[bytes]
	switch {
	case bytes == 1 && reg >= x86.RSP: // behind al to bl come ah to bh
		first = x86asm.SPB - x86asm.Reg(x86.RSP)
	case first == 0:
		first = x86asm.RAX
	}
	return strings.ToLower((first + x86asm.Reg(reg)).String())
}

func (amd64) FrameRegister(dwarf int8) (number uint8, ok bool) {
	switch dwarf {
	case x86.DwarfRSP:
		return uint8(x86.RSP), true
	case x86.DwarfRBP:
		return uint8(x86.RBP), true
	}
	return 0, false
}

// A call pushes the return address; the CFA is what the stack pointer was before.
func (amd64) CFAOfReturnAt(address uint64) uint64 { return address + 8 }

// The kernel passes the signal and, where the frame has them, the signal's information and the
// context, which lies right above the return address: calls that look so are not made.
func (amd64) BeginsHandler(regs *Registers) bool {
	const signals, context, contextSize = 64, 8, 304 // struct ucontext of the kernel
	return regs[x86.RAX] == 0 && regs[x86.RDI]-1 < signals &&
		regs[x86.RDX] == regs[x86.RSP]+context && regs[x86.RSI] == regs[x86.RDX]+contextSize
}
