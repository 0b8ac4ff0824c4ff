// Package arch is the seam to the processor's architecture: what the decoder, the plan and the
// attaching part need to know of it besides instructions, which loader/x86 knows. A second
// architecture is a second implementation of Arch; bpf/arch_x86.h is the same seam in C.
//
// Registers are named by hardware number, as instructions, sites and events name them.
package arch
