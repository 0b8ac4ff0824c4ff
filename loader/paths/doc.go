// Package paths numbers the acyclic paths of a routine (Ball and Larus 1996; Larus 1999, section
// 2): every way from a start (the entry, the target of a back edge, the block after a call, a
// landing pad) to an end (a back edge, a call, a return, a tail jump) has a number, and a number
// gives its blocks back. It knows nothing of probes: whoever walks the CFG adds up what each edge
// is worth.
//
// Of a routine with many paths, Prefer numbers those compactly that are of interest (Vaswani, Nori
// and Chilimbi 2007), so that an array can count them: a Counter says how.
package paths
