// Package raw is the raw trace: the operations of Larus 1999, section 2, of all threads of a
// program, as bytes, before any compression. docs/raw-trace.md specifies it for those who write
// one.
//
// It promises that a Reader gives back the paths and the marks that a Writer was given, in each
// thread's order, with all that is needed to understand them; that the threads' operations are well
// formed, as ops.Sink has it, or give one clear error with the byte where it is; and that both work
// on a stream: they hold the tables of routines and paths and 8 bytes for each open activation,
// nothing that grows with the trace. It neither compresses (see ppcompress) nor knows how paths are
// numbered, and builds on any system.
package raw
