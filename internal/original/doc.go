// Package original finds the files that a snapshot was recorded of, and that it does not hold:
// source files, and programs and libraries, told from other builds by their build ids.
//
// Paths are opened with what the process may do: who opens what a user or a snapshot names has
// given up its capabilities before. A device, a pipe or a source file of more than 64 MiB is an
// error. Functions may be called at the same time.
package original
