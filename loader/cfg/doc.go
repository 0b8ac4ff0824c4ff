// Package cfg recovers the control flow graph of every routine of an x86-64 image, stripped or not.
//
// A routine is a set of frame description entries; it is exact or it is left out with its reason:
// blocks, edges, jump tables, cold parts, calls that never return, landing pads and tail calls of
// an exact routine are those that can execute. Correct comes before complete: a jump of which it is
// not known where it may lead leaves its routine out. A function that no frame description entry covers is left
// out. The package knows nothing of paths, probes or the kernel.
package cfg
