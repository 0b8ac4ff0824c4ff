// Package ops is the language between a decoder and everything that keeps or reads a trace: the
// operations of Larus 1999, section 2, for one thread, and the alphabet of symbols that stands for
// them in a grammar.
//
// It promises that symbols give operations back: a Recorder turns the operations of a well-formed
// stream (see Sink) into symbols of paths and marks, an Expander turns those into operations again.
// Entering and leaving a routine need no symbols of their own, since they follow from where paths
// start and end and from the marks:
//
//   - A path that starts at StartEntry, and the path directly after a Resume mark, is the first of
//     a new activation: EnterRoutine stands just before it. (A decoder may say EnterRoutine
//     earlier, before a handler interrupts that path, say; the Expander does not.)
//   - A path that ends with EndReturn or EndTail closes the innermost activation: LeaveRoutine
//     stands just after it.
//   - An Unwind mark of n closes n activations: LeaveRoutine stands n times just after it.
//   - Nothing else opens or closes one. Activations open at the end of a stream are so because
//     tracing ended.
//
// It knows routines and paths only by their numbers, does no I/O and does not compress.
package ops
