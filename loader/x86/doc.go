// Package x86 decodes what a tracer must know of an x86-64 instruction: its length, what it does to
// control flow, to the stack pointer and to its ModRM operand, and whether a uprobe may sit on it.
// It promises lengths equal to GNU objdump's on compiled code, never reads past the bytes given,
// and answers Never, false or "unknown" where it is not sure. It does not print instructions, knows
// no APX (REX2, EVEX map 4), and knows nothing of basic blocks.
package x86
