// Package counting says which probes tell some paths of a routine, the interesting ones, from each
// other and from all others, and how hits of these probes count the paths. What else runs need not
// be known: fewer probes do than the plan of package plan has, which records all.
//
// A thread's state is a row: what its hits in this activation say of its path. A hit has a step
// from the row to the next, and adds one to a counter. Where the row has no step for the hit, or
// the thread's last hit was in another activation, the path has begun since, and the hit has a
// default. So nothing need happen at the ends of paths, and nothing but the last row is remembered.
// How often a path ran follows from the counters afterwards: it is how often all of its hits were
// made, less how often more came behind them on the same path (the virtual end of Ball and Larus
// 1994, which has no probe). Interesting are the paths of Vaswani, Nori and Chilimbi 2007.
//
// Each counted path makes a hit, so that its count rests on nothing that other paths did: what a
// call that has not returned yet leaves undone makes no difference. What is chosen is proven, by a
// check that follows the routine's graph, whatever states a thread may come with, and that knows of
// the choice its result alone.
//
// One thing is not foreseen, as by rule 11 of package plan: a signal handler that is left by a
// jump, after which the same routine is entered anew in the same place. Where a thread dies in the
// midst of a path, that path counts if all its hits were made.
package counting
