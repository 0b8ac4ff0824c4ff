// Package samples is the section of a snapshot that says where the program's CPU time went, by
// samples: in which routines, in which other files, in the kernel, and in code that no file has. A
// Profile is that section as data; a Share says how sure a share of samples is.
//
// A Profile that Of returns refers to nothing that its snapshot does not have. The package takes no
// samples, and builds on any system.
package samples

//go:generate protoc --go_out=. --go_opt=paths=source_relative samples.proto
