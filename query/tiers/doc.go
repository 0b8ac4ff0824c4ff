// Package tiers makes of a snapshot that has values what the paper stores of a trace (Zhang and
// Gupta 2004, section 3), in its two tiers: timestamps, values and the labels of dependences of
// each node, which is an acyclic path. A file of wpptrace has none of it, as all follows from what
// emulation mispredicts; so this says how the file compares with it.
//
// In the first tier, a path has one timestamp for all its statements (section 3.1). Those of its
// values that follow from the same inputs are a group: the different ones that the group has had
// are kept once, and of each execution which of them it was, for all the group's statements
// together (section 3.2). A dependence within an execution of a path needs no label; those between
// the same two paths that have the same labels share them (section 3.3). In the second tier, all of
// these are streams (section 4, package streams).
//
// It promises that sizes of the first tier are in the paper's units: four bytes a timestamp or a
// value, eight a label; which values a group had takes one, two or four bytes each time.
package tiers
