// Package faults is the section of a snapshot that says at which instruction a thread faulted and
// so ended the process: what it was doing last. A fault for which there was a handler is none.
//
// Faults that Of returns are at instructions of traced routines, and refer to nothing that their
// snapshot does not have. The package builds on any system.
package faults

//go:generate protoc --go_out=. --go_opt=paths=source_relative faults.proto
