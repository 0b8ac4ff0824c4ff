#include "textflag.h"

// func emulated()
TEXT ·emulated(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x90
	RET

// func stepped()
TEXT ·stepped(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ AX, AX
	RET

// func addresses() (emulated, stepped uint64)
TEXT ·addresses(SB), NOSPLIT, $0-16
	LEAQ ·emulated(SB), AX
	MOVQ AX, emulated+0(FP)
	LEAQ ·stepped(SB), AX
	MOVQ AX, stepped+8(FP)
	RET
