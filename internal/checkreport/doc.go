// Package checkreport says what a machine and a process have of what tracing requires, and what is
// missing, with its fix, as wpptrace check prints it.
//
// What is required, and whether it is met, package requirement knows; here are the outcomes, and
// two more: what this kernel does without (Limits), and where the CPU time of a process goes
// (CPUTime). Texts name flags of wpptrace. What a user can do about an error only the caller knows,
// who says what it is printed as. A writer's error is returned. No value is for several goroutines
// at the same time.
package checkreport
