// Package variables finds out where the variables of the routines that a recording traces are, by
// what debug information and unwind tables of the program's files say, for the snapshot: what is
// told in another way than by one register or one address is not known.
package variables
