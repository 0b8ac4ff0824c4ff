// Package shape finds what of a recorded program's control flow its overlapping paths follow from:
// the shapes that package overlapped defines, of the routines of a snapshot, by the files that it
// was recorded of. These are found by their build ids, and need not be what they were: a routine
// whose graph is not that of the snapshot has no shape, and the reason is said. Bounds is what
// wpptrace bounds asks: the shapes, the counts, and the bounds that follow.
package shape
