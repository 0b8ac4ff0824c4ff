// Package cfg is the control flow graphs of a program: its routines, their blocks and edges, and
// what follows from these.
//
// A routine is a set of frame description entries; it is exact or it is left out with its reason:
// blocks, edges, jump tables, cold parts, calls that never return, landing pads and tail calls of
// an exact routine are those that can execute. Correct comes before complete: a jump of which it is
// not known where it may lead leaves its routine out. A function that no frame description entry
// covers is left out. The package knows nothing of paths, probes or the kernel.
//
// Package recovery finds the graphs of an image, stripped or not. What is known is kept by who
// finds it, and each of these packages knows those before it:
//
//   - absint: what instructions make of registers, in abstract values;
//   - jumptable: where indirect jumps lead;
//   - sweep: the instructions, in pieces, one for each frame description entry, and what the image
//     says of its code, and its code of itself: names, and who mentions what;
//   - draft: the routines in the making: blocks, and what control flow reaches;
//   - soundness: what keeps a routine from being traced, as a list of checks;
//   - recovery: all of these until nothing changes any more.
package cfg
