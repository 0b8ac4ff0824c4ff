// Package interesting says which paths of a program are of interest, because a snapshot has
// recorded them, or is most of what ran, and how compactly package paths numbers them.
//
// A Set has the paths by routine. It holds those alone that are paths of this build, in routines
// that its plan traces; of others it says how many there are. A Report is what wpptrace plan
// --interesting prints. Nothing is attached or traced. Snapshots and names of programs may be
// hostile: an answer, or an error of one line, comes of them. No value is for several goroutines at
// the same time.
package interesting
