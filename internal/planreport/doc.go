// Package planreport says in words what a plan makes of a program: which routines are traced, by
// which probes, what that costs, and what is not traced and why.
//
// A Report is all of it, as wpptrace plan prints it, and a Chart that of one routine. Lines and
// Forecast are what a recording prints of its plan before it begins, a message a line.
//
// A Question has them made for a process or a file. What plans and traces are packages traced and
// record. The texts name the flags of wpptrace by which a user gets another plan. Names of programs
// may be hostile, and are made harmless where text is printed; JSON spells them as they are. A
// writer's error is returned. No value is for several goroutines at the same time.
package planreport
