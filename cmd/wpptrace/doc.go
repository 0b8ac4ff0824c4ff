// Wpptrace records the whole program path of a live process: every acyclic path that every thread
// takes, in order, across loops and calls, without recompiling or restarting it. It compresses the
// record while it runs and answers questions about it: see wpptrace --help.
//
// This package wires the others together and prints for the user; it is the only main. It promises
// that the target is left as it was found, however the recording ends; that results go to stdout
// and everything else to stderr; that an error is one line that names what was attempted, on what,
// and what to do; and that the last line says what was lost. It does not decode, compress or
// query: see decoder, compress and query.
package main
