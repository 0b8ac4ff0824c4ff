// Package streams compresses streams of values by predicting them, and steps through them both ways
// without expanding them (Zhang and Gupta 2004, section 4).
//
// A stream is predicted by one of twelve methods: FCM, differential FCM, last n and last n stride,
// each with three sizes of context. Which one is found by trial (section 4, "Selection"); a stream
// whose values are all the same has none. In memory a stream lies as the paper has it: a bit for a
// value that is predicted, a bit and a word for another, with tables that a step forward changes
// and a step backward changes back. Where they are stored, streams that are asked together are a
// set: predictions and what they miss are coded by compress/coding, which learns over all of them.
// Opening a set takes time in proportion to its values; so a set is what lies between two
// checkpoints. Files of wpptrace have no streams: package query/tiers makes them of a snapshot, to
// compare.
//
// It promises that a stream that was opened gives the values that were appended, that forward then
// backward leaves the state that was, and that a damaged set gives an error, in no more memory than
// the caller allows it values. It builds on any system. A change of a constant, or of the order of
// methods, changes the format.
package streams
