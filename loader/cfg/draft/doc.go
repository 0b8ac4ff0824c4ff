// Package draft follows control through the routines of a file until their blocks and edges settle.
//
// A Program has all of the file's routines in the making. The Builder makes the blocks of one from
// what control flow reaches; package jumptable resolves its indirect jumps, which may reveal more
// code; what turns out never to return has its callers built again. Clobbers and Returns know which
// registers a routine changes, and what it does with its return address; Twice knows what may
// return more than once. Routines are built several at a time. Whether one that is built can be
// traced is for package soundness.
package draft
