// Package query answers questions about a snapshot: which subpaths are hot, how often sequences of
// paths ran, what ran before and after a path, how a snapshot differs from another, and what the
// trace amounts to (Stat). Of its sub-packages, profile says what ran by routine, line and
// instruction, rules asks for paths by patterns and rules of order, report prints answers.
//
// It promises exact answers, computed on the grammars, which are not expanded. Counts stop at
// 2^64-1, answers are deterministic, and a snapshot is only read, so that any number of queries may
// run on it at once. The snapshot must be one that format.Read returned or Snapshot.Check accepts;
// where it is of segments that stay in their file, a question returns a *wpp.LoadError if one
// cannot be read any more: none panics. Names in it may be hostile, and errors print them harmless.
// It knows nothing of tracing, targets or kernels, and builds on any OS.
package query
