// Package callees is the section of a snapshot that has the names of code that was not traced, as
// far as traced code calls it by an address that its instructions have: that of a stub of the
// procedure linkage table, or of the slot that it jumps through. These are functions of libraries.
//
// Names are those of the program file, and may be hostile. Callees that Of returns refer to nothing
// that their snapshot does not have. The package builds on any system.
package callees

//go:generate protoc --go_out=. --go_opt=paths=source_relative callees.proto
