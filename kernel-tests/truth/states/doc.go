// Package states has recorded truths of small programs, with their executables, so that what reads
// values is tested without a kernel and without root. They are of gcc -O2 -pie programs of the zoo,
// run at fixed addresses; each instruction of the executable has its registers and its memory.
package states
