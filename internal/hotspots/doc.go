// Package hotspots answers what is hot in a snapshot: subpaths, routines, callers, lines,
// instructions and sequences of addresses. A Question has the flags that ask.
//
// It opens files as the user: who calls it has no capabilities.
package hotspots
