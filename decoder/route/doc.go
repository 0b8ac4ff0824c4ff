// Package route knows, of each routine of a plan, the probe-free routes between two events: from a
// Position, which is where an activation stands, to the next site, to an instruction amid the way,
// or out of the routine. A route is found once; after that a step of the decoder is a look-up.
//
// Nothing here knows a thread, a stack or an event: a Transition is what one activation completes
// on a route, as a list of operations. The rules that make a route the only one are listed in
// package plan. A Program and all that hangs on it belong to one goroutine at a time.
package route
