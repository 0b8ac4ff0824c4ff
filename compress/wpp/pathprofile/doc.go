// Package pathprofile is the section of a snapshot that makes it a path profile: how often each
// path ran, and not in which order. Such a snapshot has no threads, and so no grammars.
//
// The section is critical: a reader that does not know it would find that nothing ran. Counters
// stop at Most, and say so. A Counter takes the operations of a decoder, as a recorder of a grammar
// does, in memory that depends on how many different paths there are, and not on how often they
// run. Counts that Of returns have one count for each symbol of their snapshot. The package builds
// on any system.
package pathprofile

//go:generate protoc --go_out=. --go_opt=paths=source_relative pathprofile.proto
