// Package deeds replays the values of threads as what patterns with values are read against: calls
// of routines by name, what these return, and accesses to memory.
//
// It keeps which calls have not returned: by the stack pointer, so that a call that is unwound, or
// of which that is not known, returns nobody knows what. What is not known of a deed is Unknown in
// it; nothing is guessed. Routines may be of code that is not traced, as far as traced code calls
// them. What a pattern makes of the deeds is package rules' part.
package deeds
