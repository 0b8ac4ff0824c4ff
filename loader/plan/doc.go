// Package plan decides which instructions of a program carry a probe, so that the words of the probes determine every path (design, section 3).
//
// A block with a probe is a witness. Between two words of an activation there is exactly one silent way, an
// activation is silent only where its callers imply what it did, and a word separates any two calls of code that is not observed. What cannot be made so is
// left out, with its reason. This plan is the plain one: every conditional jump, every switch, every entry that has a cheap
// instruction, and what the rules of silence ask for besides. The package knows nothing of the kernel and attaches nothing.
package plan
