// Package planner finds the plan of a program: which instructions carry a probe, so that the events
// of the probes determine every path.
//
// It chooses probes routine by routine, in rounds. In a routine, some blocks must have a probe;
// of the others it takes a cheap set: the edges that no probe covers form a forest (Ball and
// Larus 1994), and the dear probes are dropped first. It adds probes until every rule that package
// plan lists holds, and leaves out the routines for which it finds none. What a routine needs
// depends on who is traced among those it calls, so leaving one out starts a round. The search is
// dropped when the plan is made; package plan/verify proves the plan, and shares nothing with the
// search.
//
// The package knows nothing of the kernel and attaches nothing.
package planner
