// Package loads plans what is read of memory at a hit, so that the values of all instructions up to
// the next hit follow from the registers and what was read: a load program for each outcome of a
// site (Zhang and Gupta 2004 record each value by instrumentation instead). The kernel runs the
// programs; Run does the same to what it has seen, for the addresses follow from what was read
// before.
//
// From a hit to the next there are few ways, of which the outcome and what the program reads decide
// most. What the code on each of them loads is found by executing it in terms of what registers and
// memory hold at the hit. Loads whose addresses are a constant apart are one read, if they lie
// within MostBytes. No program reads
//
//   - what the way itself has stored;
//   - what is stored in the frame of a routine that takes no address in it, return addresses and
//     what is popped: only the code that is followed writes there, but for the return address of a
//     routine that external code alone calls, which is read;
//   - read-only data of the image's file;
//   - what has an address that cannot be computed at the hit, or would be one read too many.
//
// But it reads the first three where an address, or which way is taken, depends on them. Behind a
// return to a caller that is not known it knows the last few of what the way has stored.
//
// A read says what memory held at the hit, whatever the program was made for: one that guesses
// wrong is slow, or of no use, but nothing follows from it that is wrong. So places whose addresses
// are not known to be the same are taken for different ones.
//
// The package does no I/O, and knows no process but by Process.
package loads
