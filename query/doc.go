// Package query answers questions about a snapshot: which subpaths are hot, how often and where a
// sequence of paths ran, which rules of order the threads keep, what ran before what, how it
// differs from another snapshot, and what the trace amounts to (stat). Answers are data: package
// report prints them.
//
// It promises exact answers, computed on the grammars, which are not expanded. Counts stop at 2^64-1, answers are deterministic, and a snapshot is only read, so that any number
// of queries may run on it at once. The snapshot must be one that format.Read returned or
// Snapshot.Check accepts; where it is of segments that stay in their file, a question panics with a
// *wpp.LoadError if one cannot be read any more: defer wpp.Recover. Names in it may be hostile, and
// are made harmless where they are printed. It knows nothing of tracing, targets or kernels, and
// builds on any OS.
package query
