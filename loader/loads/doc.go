// Package loads plans what is read of memory at a hit, so that the values of all instructions up
// to the next hit follow: a load program for each site and outcome (Zhang and Gupta 2004 record
// values by instrumentation instead). It does no I/O and knows no process.
package loads
