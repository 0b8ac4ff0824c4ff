// Package variables finds out where the variables of the routines that a recording traces are, by
// what debug information and unwind tables of the program's files say, for the snapshot. Types that
// several files of a program's source describe are in it once.
package variables
