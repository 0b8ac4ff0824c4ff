// Package profile says what ran, and how often: by routine (Flat), by who called it (CallersOf), by
// source line (Lines) and by instruction (Listings), and where the CPU time went by samples
// (CPUTime).
//
// It promises what package query does, of which it takes how often paths ran: answers are data,
// exact and deterministic, computed on the grammars, which are not expanded; counts stop at 2^64-1,
// a snapshot is only read, and where a part of it cannot be read any more a question returns a
// *wpp.LoadError. Package report prints the answers.
package profile
