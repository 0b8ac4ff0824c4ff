// Package variables is the section of a snapshot that says where variables of the traced routines
// are, while they run, and of what types they are: as expressions of debug information, without
// what these leave to other sections of a file.
//
// Variables that Of returns refer to nothing that their snapshot does not have. The package builds
// on any system.
package variables

//go:generate protoc --go_out=. --go_opt=paths=source_relative variables.proto
