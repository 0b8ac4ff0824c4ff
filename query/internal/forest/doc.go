// Package forest holds the grammars of threads, and says of what they derive how often sequences of
// symbols occur, what follows them, and which of it they cover: exactly, and without expanding the
// grammars. It knows terminals and rules, and not what terminals stand for.
//
// Grammars that fit into memory are laid out side by side, so that a place leads to those around it
// (Walker); of larger ones all is found by reading each rule once (Read, Upwards), and memory is
// that of one grammar, or of one segment of it. Counts stop at 2^64-1. It panics with a
// *wpp.LoadError where a segment cannot be read any more, which the exported questions recover.
package forest
