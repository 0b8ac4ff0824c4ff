// Package wpp is the whole program path as something to keep and to read: the grammar of each
// thread as a DAG (Larus 1999, section 3.3), and the snapshot file that holds it with all the
// tables needed to understand it elsewhere.
//
// It promises that what Write wrote Read gives back equal; that a file that is truncated, damaged
// or hostile gives one clear error and bounded cost, and nothing that was read needs checking
// again; that WriteFile leaves either the new snapshot whole or the old one; and that nothing here
// recurses on, or takes time in proportion to, what a grammar expands to, but for Expand. It does
// not trace, compress streams (see sequitur) or answer questions (see query), and builds on any
// system.
package wpp

//go:generate protoc --go_out=. --go_opt=paths=source_relative wpp.proto
