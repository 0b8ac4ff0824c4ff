// Package repair makes a small grammar off line: by Re-Pair (Larsson and Moffat 2000), which makes
// the most frequent pair of neighbours a rule, over and over, until no pair occurs twice; then it
// takes those rules out again that do not pay.
//
// It promises that the result derives what was given, that every rule but the start rule is used at
// least twice, and that the same input gives the same result, in linear time. Unlike sequitur it
// needs all of its input at once, and 50 to 140 bytes of memory a symbol. It does no I/O, and does
// not know what the symbols mean.
package repair
