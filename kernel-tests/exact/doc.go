// Package exact records a program with wpptrace, as a user would, and holds the record against the
// truth.
//
// It promises that a record which passes is what the program executed: the same instructions in the
// same order in each thread, with nothing lost and nothing but time changed for the program. It
// does not say that everything was traced: a Proof carries how much was. It runs programs as
// root, on Linux and x86-64.
package exact
