// Package plan decides which instructions of a program carry a probe, so that the words of the probes determine every path (design, section 3).
//
// A block with a probe is a witness. Between two words of an activation there is exactly one silent way, an
// activation is silent only where its callers imply what it did, and a word separates any two calls of code that is not observed. What cannot be made so is
// left out, with its reason. Of the sets of witnesses that do, it looks for a cheap one: the edges that no witness tells of form a forest (Ball and
// Larus 1994), and the dear ones are dropped first. The package knows nothing of the kernel and attaches nothing.
package plan
