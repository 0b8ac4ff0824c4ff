// Package rules is the language in which paths are asked for by name: sequences (Find), which of
// two ran before the other (PathOrder), and rules of order (Check), regular expressions over paths
// among them.
//
// A pattern is read into an automaton, and the automaton reads the grammars, whose rules it reads
// once for each state that it meets them in: nothing is expanded. Answers are data, exact and
// deterministic; package report prints them. A question fails with an error where the text is
// wrong, where a part of the snapshot cannot be read any more, and where it would take more memory
// than is set apart for it; none panics.
package rules
