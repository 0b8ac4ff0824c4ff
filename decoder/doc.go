// Package decoder turns the events of the ring buffer back into what ran: it walks each activation
// along the only probe-free route from one hit to the next, as a decoder of a hardware trace walks
// the binary, and emits the operations of Larus 1999, section 2. The rules that make a route the
// only one are listed in package plan.
//
// Nothing moves without evidence, so what is emitted happened, in that order. What cannot be known
// is marked: gap, resume, cut, unwind. A Thread is fed by one goroutine at a time; all threads of a
// Decoder share its tables and must be fed by the same goroutine.
//
// # Parts
//
// Each part of a Thread has a state of its own, and calls those below it alone:
//
//	Thread    takes events: what comes before a hit is its evidence
//	placer    which activation an event belongs to; exceptions; threads met in mid-run
//	signals   where a signal came, by a search for the ways to there; handlers; a thread's end
//	calls     how activations begin and end
//	stack     the activations themselves, and the stacks that the thread has switched away from
//	emitter   one activation along one route: its paths, and what is cut off of them
//	route     (a package) the probe-free routes of each routine, found once
//
// A hit of the innermost activation, the usual case, is a look-up of its route, and the operations
// that the route completes: enter and leave of routines that have no events, paths with their
// numbers.
package decoder
