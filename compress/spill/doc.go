// Package spill keeps the grammars of a recording's threads within a budget of memory: the grammar
// that is the largest when the budget is used up becomes a segment in the snapshot's file, and its
// thread goes on with an empty one.
//
// It promises that the memory that grammars hold, and that closing and coding them takes, stays
// within the limits but for what a thousand symbols a thread add; that a thread's segments stand in
// the order of its stream; and that what is spilled is on the disk, readable, whatever happens
// next. Coding runs beside the recording, which waits for it only where memory runs out meanwhile.
// It does not bound the alphabet or the program's tables: whoever makes them subtracts them from
// the limits (see Limits.Other).
package spill
