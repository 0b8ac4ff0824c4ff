package x86

// A Kind says what an instruction does to control flow.
type Kind uint8

// The kinds of instruction.
const (
	Other   Kind = iota
	Jcc          // conditional jump, relative
	Jmp          // unconditional jump, relative
	Call         // call, relative
	JmpInd       // jump through a register or memory
	CallInd      // call through a register or memory
	Ret          // near and far returns
	Loop         // loop, loope, loopne, jrcxz, xbegin: conditional, but not on the flags alone
	Trap         // ud0, ud1, ud2, hlt, int3
	Syscall      // syscall, sysenter
)

// A Class says what a uprobe on an instruction costs, from an allow-list: what the list does not
// name is Never.
type Class uint8

// The probe classes.
const (
	Never    Class = iota // a probe may harm the target, or the kernel refuses it
	Emulated              // the kernel emulates the instruction: about 0.5 us a hit
	Stepped               // the kernel single-steps the instruction: 20 to 40 times dearer
)

// An Inst is one decoded instruction. Under VEX, EVEX and XOP the prefix's fields appear as their
// legacy equivalents: Rex is 0x40 with the bits W, R, X and B, OpSize and Rep are what the field pp
// implies. It is kept to 16 bytes: a program has millions.
type Inst struct {
	Rel      int32 // displacement of a relative jump or call, from the instruction's end
	Len      uint8 // bytes
	Kind     Kind
	Op       byte  // opcode in its map
	Map      uint8 // 0 one byte, 1 0F, 2 0F38, 3 0F3A; +0x10 VEX, +0x20 EVEX, +0x30 XOP
	ModRM    byte
	HasModRM bool
	Rex      byte
	OpSize   bool // 66 prefix
	Rep      byte // f2, f3 or 0

	prefix    prefix
	operandAt uint8 // offset of the ModRM byte, or of the first byte behind the opcode
	vvvv      uint8 // the register that the field vvvv of VEX, EVEX and XOP names
}

// A prefix is a set of the prefixes that matter to the probe class or to operands.
type prefix uint8

const (
	lockPrefix prefix = 1 << iota
	segmentPrefix
	addressPrefix
	fsPrefix // with segmentPrefix
	gsPrefix
	wideVectors // the field L of VEX
)

// An Operand is where an instruction finds a value: a register, or memory at Base + Index*Scale +
// Disp. Registers are numbered as the hardware encodes them (0 rax, 4 rsp, 5 rbp, 15 r15); -1 means
// none. When RIP is set, Disp is the absolute link-time address. It is kept to 16 bytes: decoding
// one is mostly copying it.
type Operand struct {
	Mem              bool
	Reg, Base, Index int8
	Scale            uint8
	RIP              bool
	Size             uint8 // bytes read
	Disp             int64
}
