// Package truth single-steps a program with ptrace and says which instructions of its main
// executable ran, in order, a thread at a time: the oracle that the tracer's record is compared
// with, instruction by instruction.
//
// It promises that every instruction that completed in the main executable's text is there exactly
// once (a rep instruction counts once), that signals, threads, fork and exec behave as in an
// ordinary run, and that a difference is reported with its neighbourhood. It does not promise speed
// (10 to 20 us an instruction), does not follow forked children or the program after an exec, and
// does not hide TF from a program that looks at its own flags or int3 bytes from one that reads its
// own text.
package truth
