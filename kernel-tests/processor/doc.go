// Package processor runs short sequences of instructions for real and says what they have made of
// registers, flags and a little memory: the oracle that package machine is compared with.
//
// They run in a child process that may only wait, end, and return from signals: it has no file but
// the memory that it shares with the test, and any other system call kills it. What raises an
// exception ends its case, what does not end is ended. It needs gcc, and no root.
package processor
