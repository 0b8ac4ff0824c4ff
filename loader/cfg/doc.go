// Package cfg recovers the control flow graph of every routine of an x86-64 image, stripped or not.
//
// A routine is a set of frame description entries; it is exact or it is left out with its reason:
// blocks, edges, jump tables, cold parts, calls that never return, landing pads and tail calls of
// an exact routine are those that can execute. Correct comes before complete: a jump of which it is
// not known where it may lead leaves its routine out. A function that no frame description entry
// covers is left out. The package knows nothing of paths, probes or the kernel.
//
// What is known is kept by who finds it, and each knows those before it:
//
//   - code: the instructions, in pieces, one for each frame description entry;
//   - file: what the image says of its code, and its code of itself: names, and who mentions what;
//   - builder: the blocks of a routine in the making, and what control flow reaches;
//   - clobbers and returns: which registers a routine changes, what it does with its return
//     address;
//   - package jumptable: where indirect jumps lead;
//   - recovery: all of these until nothing changes any more;
//   - frame, linkage, transactions: what keeps a routine from being traced; soundness.go has
//     them in order, with the reasons for it.
package cfg
