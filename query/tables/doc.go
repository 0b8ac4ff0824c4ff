// Package tables makes, of a snapshot that has values, the tables of the paper that whole execution
// traces are from (Zhang and Gupta 2004, section 5): how large they are and how fast they answer.
//
// It promises that sizes are those of the file and of what is counted by replaying all of it, and
// that times are of this machine, now. Of the paper's two tiers the file has the second alone: both
// are made for what ran first, see package tiers. Table 4 needs hardware counters, and table 5 is
// the time of the recording itself: neither is here.
package tables
