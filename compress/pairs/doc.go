// Package pairs says of a thread's paths which went directly on in which: around a back edge, into
// the routine that a call begins, and back to its caller (Tallam, Zhang and Gupta 2004). A Walk
// takes the paths and marks of one thread in their order, while it runs or from a recording.
//
// It promises that two paths make a pair only if the second is what ran directly behind the first
// in the same activation, or in the one that its call began or its return ended. What may be
// otherwise is no pair, and is counted by reason (Break). It knows paths by their symbols, starts
// and ends alone. External code is not seen: a routine that it calls back first after a call is
// taken to be what that call begins. One that it calls back later is not.
package pairs
