// Package overlapped counts overlapping paths (Tallam, Zhang and Gupta 2004): how often an acyclic
// path ran, and what followed it directly, behind the back edge, call or return that ends it, up to
// some predicates. The section of a snapshot keeps these counts, with what of each routine they
// depend on: its loops, its predicates and whom it calls. So they need no program to be understood.
//
// The section is not critical: who does not know it reads the path profile that it stands beside.
// The package builds on any system.
package overlapped

//go:generate protoc --go_out=. --go_opt=paths=source_relative overlapped.proto
