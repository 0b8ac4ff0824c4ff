// Package sequitur compresses a stream of symbols into a context-free grammar while it arrives: the
// algorithm of Nevill-Manning and Witten (1997) as Larus 1999, section 3.1, uses it.
//
// It promises that after every Append the grammar derives exactly the symbols appended, that no two
// non-overlapping digrams are equal (digram uniqueness) and that every rule but the start rule is
// used at least twice (rule utility); the last few symbols, and a repetition that goes on, are held
// back until a method asks for them. Time is linear in the stream but for the depth of the
// rules that repetitions begin with, memory linear in the grammar: about 26 bytes for each
// right-hand-side symbol, at no time more than 30, and up to 15 for each distinct run, none of
// which the garbage collector must look into. A grammar that folds runs (see NewFolding) promises
// that of the stream in which each run of equal symbols is one symbol. It does not bound memory
// (see Bytes), do I/O, or know what the symbols mean.
package sequitur
