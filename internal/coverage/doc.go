// Package coverage finds out which code of a process runs, at next to no cost: each block of each
// routine whose graph is exact has a probe until it is hit. Run puts them in, takes those out that
// were hit, and returns what has run as covered.Coverage, of which a table, a tracefile of lcov and
// a JSON object are printed. RunAll does so for several processes. Residual has probes only where
// no Baseline has run, and reports what is new as an Event as it happens.
//
// The probes stand in groups. A group of which some are hit often is replaced by one of the rest,
// which goes in before the former goes out, so that no block runs unseen. What is likely to be hit
// often, by samples of the process's CPU time, goes in last and in small groups, each of which is
// replaced at once.
//
// Residual has probes in those blocks alone that no Baseline has run, and reports them. An edge
// between blocks that both run is seen at its jump alone, whose probe stays until all its new
// outcomes were seen, or it is hit too often.
package coverage
