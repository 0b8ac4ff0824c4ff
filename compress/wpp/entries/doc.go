// Package entries is the section of a snapshot that says how activations began, of calls and tail
// jumps through pointers and stubs, whose callees the code does not name: a traced routine entered
// them, or external code that it had called did. A decoder knows by their return addresses. Symbols
// do not keep it: a call-back stands in a stream where a callee would.
//
// Counts that Of returns refer to nothing that their snapshot does not have. The package builds on
// any system.
package entries

//go:generate protoc --go_out=. --go_opt=paths=source_relative entries.proto
