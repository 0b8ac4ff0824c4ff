// Package variables is the section of a snapshot that says where variables of the traced routines
// are, while they run: in which registers, or where in memory. What a compiler says in another way
// than by a register or an address is not known.
//
// Variables that Of returns refer to nothing that their snapshot does not have. The package builds
// on any system.
package variables

//go:generate protoc --go_out=. --go_opt=paths=source_relative variables.proto
