// Package recordreport says in words what happens during a recording and what became of it: its
// live line, how its process came to its end, what was lost and where, what its windows cover, and
// why little of it was traced; and it writes the tables of what ran.
//
// It neither records nor prints messages: package record does the one, the caller the other, who
// knows what an error is printed as, and which messages the user wants. Texts name the flags of
// wpptrace that help. Of a plan, before a recording begins, package planreport says the like. Names
// of programs may be hostile, and are made harmless. No value is for several goroutines at the same
// time.
package recordreport
