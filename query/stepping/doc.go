// Package stepping moves through what a thread has executed, forwards and backwards, as a debugger
// does: by instruction, by source line, out of a routine, to a place. At each position it has the
// calls that led there, and what registers and memory hold as far as that is known.
//
// It promises that steps forward and steps back stop at the same positions. It holds the
// instructions of two segments of values at most, and a step takes the time of a replay of the
// segments that it goes through, or less. It builds on any system.
package stepping
