// Package bounds says how often paths ran that cross a back edge, a call or a return, as far as
// counts of shorter paths tell (Tallam, Zhang and Gupta 2004), and how often they did, where the
// order of paths is known.
//
// An interesting path p!q is a path p up to a back edge, a call or a return, and the path q behind
// it. An overlapping path of degree k is p and the beginning of q, up to the predicate number k+1.
// Counts of overlapping paths bound those of the interesting ones: Group.Solve has the equations.
//
// It promises that lower <= truth <= upper for counts of the same run, that a bound for k+1 is
// never wider than one for k, and that it leaves out by name what it cannot answer. It reads no
// program: a Shape says of a routine's blocks which are predicates, and which are loops.
package bounds
