// Package usermode compiles the C of a hit (bpf/hit.h) for user space, so that tests run the very
// code that the kernel runs, on a simulated process.
//
// A Machine is the process: its memory and the plan's tables. It promises that a Hit does what the
// BPF program does once it has found the thread's storage and the site, and that batches leave in
// the kernel's format. It does not simulate the rest of the kernel: no ring buffer (Output stands
// for it, and may refuse), no verifier, no preemption. It needs cgo and is for tests alone.
package usermode
