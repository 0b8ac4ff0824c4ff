// Package circles finds circles in graphs whose nodes are numbers, counted from 0.
//
// A Walk finds those of a directed graph, as the routines that may call each other in turn. A
// Forest has none, whichever way its edges are followed: it says which edge would close one.
//
// Neither is safe for concurrent use.
package circles
