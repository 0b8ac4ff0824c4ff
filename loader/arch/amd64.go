package arch

import (
	"debug/elf"

	"wpptrace/loader/x86"
)

// amd64 is x86-64 under the System V ABI of Linux.
type amd64 struct{}

var names = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

func (amd64) Name() string                     { return "amd64" }
func (amd64) Machine() elf.Machine             { return elf.EM_X86_64 }
func (amd64) RegisterName(number uint8) string { return names[number&15] }
func (amd64) StackPointer() uint8              { return uint8(x86.RSP) }
func (amd64) FramePointer() uint8              { return uint8(x86.RBP) }
func (amd64) Breakpoint() byte                 { return 0xcc } // int3

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
func (amd64) ReturnAddressAt(cfa uint64) uint64   { return cfa - 8 }
func (amd64) CFAOfReturnAt(address uint64) uint64 { return address + 8 }

// The kernel passes the signal and, where the frame has them, the signal's information and the
// context, which lies right above the return address: calls that look so are not made.
func (amd64) BeginsHandler(regs *Registers) bool {
	const signals, context, contextSize = 64, 8, 304 // struct ucontext of the kernel
	return regs[x86.RAX] == 0 && regs[x86.RDI]-1 < signals &&
		regs[x86.RDX] == regs[x86.RSP]+context && regs[x86.RSI] == regs[x86.RDX]+contextSize
}
