package x86

// The general registers, as the hardware numbers them. AH to BH, the second bytes of the first
// four, have numbers of their own here: no operand is ambiguous.
const (
	RAX int8 = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	AH
	CH
	DH
	BH

	NoRegister int8 = -1
)

// What DWARF numbers rbp and rsp, which it has in another order; r8 to r15 have the hardware's
// numbers.
const (
	DwarfRBP int8 = 6
	DwarfRSP int8 = 7
)

// A Set is a set of general registers: bit n stands for register n.
type Set uint16

// AllRegisters is the set of all general registers.
const AllRegisters Set = 0xffff

// What a call may change, and what is the same to a caller before and behind it, by the calling
// convention of System V; rsp is in neither.
const (
	CallerSaved Set = 1<<RAX | 1<<RCX | 1<<RDX | 1<<RSI | 1<<RDI | 1<<R8 | 1<<R9 | 1<<R10 | 1<<R11
	CalleeSaved Set = 1<<RBX | 1<<RBP | 1<<R12 | 1<<R13 | 1<<R14 | 1<<R15
)

// SetOf returns the set of some registers. AH to BH count as the registers that they are parts of,
// and NoRegister as none.
func SetOf(regs ...int8) (s Set) {
	for _, reg := range regs {
		s |= bit(reg)
	}
	return s
}

// Has reports whether a set holds a register, or the one that AH to BH are part of.
func (s Set) Has(reg int8) bool { return s&bit(reg) != 0 }

func bit(reg int8) Set {
	if reg < 0 {
		return 0
	}
	if reg >= AH {
		reg -= AH
	}
	return 1 << reg
}

// Flags is a set of the arithmetic flags, and of the one for the direction of string instructions.
type Flags uint8

// The flags.
const (
	CF Flags = 1 << iota
	PF
	AF
	ZF
	SF
	OF
	DF

	arithmeticFlags = CF | PF | AF | ZF | SF | OF
)

// conditionFlags are the flags that a condition code, without its lowest bit, asks for.
var conditionFlags = [8]Flags{OF, CF, ZF, CF | ZF, SF, PF, SF | OF, ZF | SF | OF}
