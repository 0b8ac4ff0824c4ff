// Package covered says which code of a program has run: by image, routine, block, source line and
// outcome of conditional jumps. What could not be observed is Unknown, and never taken for code
// that has not run. Merge unites what several runs, processes and machines have run.
//
// A Coverage holds all that is printed of it, so that it is read without the program. The package
// builds on any system.
package covered

//go:generate protoc --go_out=. --go_opt=paths=source_relative covered.proto
