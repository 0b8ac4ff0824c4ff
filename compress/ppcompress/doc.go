// Package ppcompress is what Larus 1999 calls PPCompress: a trace goes in, a whole program path
// comes out, as a snapshot that all queries understand.
//
// It promises that a snapshot's paths and marks are those of the trace, in each thread's order;
// that a trace that is cut off gives what there is; and that memory grows with the grammars and the
// alphabet, not with the trace, and not beyond the limits of the recording that it is given. It
// trusts nothing that it reads, needs no privileges, and builds on any system. It knows no
// addresses: the snapshots have routines and paths, but no blocks, instructions or source lines.
package ppcompress
