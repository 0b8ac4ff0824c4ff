// Package windows is the section of a snapshot that says in which windows of a recording each
// thread ran. A thread's stream has a mark, ops.Gap of 0, where a window ends in which it ran, so
// that the list of its windows gives each stretch between such marks its window, and stretches of
// different threads that ran at the same time are known as such.
//
// Lists that Of returns have a list for each thread of the snapshot, each of which ascends. The
// package builds on any system.
package windows

//go:generate protoc --go_out=. --go_opt=paths=source_relative windows.proto
