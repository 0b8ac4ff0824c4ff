package arch

import "debug/elf"

// amd64 is x86-64 under the System V ABI of Linux.
type amd64 struct{}

// Hardware numbers.
const (
	rax = 0
	rdx = 2
	rsp = 4
	rbp = 5
	rsi = 6
	rdi = 7
)

// DWARF numbers.
const (
	dwarfRBP = 6
	dwarfRSP = 7
)

var names = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

func (amd64) Name() string                     { return "amd64" }
func (amd64) Machine() elf.Machine             { return elf.EM_X86_64 }
func (amd64) RegisterName(number uint8) string { return names[number&15] }
func (amd64) StackPointer() uint8              { return rsp }
func (amd64) FramePointer() uint8              { return rbp }
func (amd64) Breakpoint() []byte               { return []byte{0xcc} } // int3

func (amd64) FrameRegister(dwarf int8) (number uint8, ok bool) {
	switch dwarf {
	case dwarfRSP:
		return rsp, true
	case dwarfRBP:
		return rbp, true
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
	return regs[rax] == 0 && regs[rdi]-1 < signals &&
		regs[rdx] == regs[rsp]+context && regs[rsi] == regs[rdx]+contextSize
}
