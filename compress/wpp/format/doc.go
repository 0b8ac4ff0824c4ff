// Package format is the file format of snapshots: it writes a wpp.Snapshot as a .wpp file, reads
// one of any version, and knows how each part of it is coded.
//
// It promises that what Write wrote Read gives back equal, and that a file that is truncated,
// damaged or hostile gives one clear error and bounded cost. It knows no file names and syncs
// nothing: see store.
package format

//go:generate protoc --go_out=. --go_opt=paths=source_relative wpp.proto
