// Package x86 decodes x86-64 instructions: Decode gives an instruction's length, what it does to
// control flow, and whether a uprobe may sit on it; Inst.Effects what it does to registers, flags,
// memory and the stack pointer, for those who follow values. No other package looks at opcodes.
//
// It promises lengths equal to GNU objdump's on compiled code, never reads past the bytes given,
// and answers Never, false or "unknown" where it is not sure. It does not print instructions, knows
// no APX (REX2, EVEX map 4), and knows nothing of basic blocks.
package x86
