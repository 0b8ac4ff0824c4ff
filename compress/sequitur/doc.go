// Package sequitur compresses a stream of symbols into a context-free grammar while it arrives: the algorithm of Nevill-Manning
// and Witten (1997) as Larus 1999, section 3.1, uses it.
//
// It promises that after every Append the grammar derives exactly the symbols appended, that no two non-overlapping digrams are equal
// (digram uniqueness) and that every rule but the start rule is used at least twice (rule utility); time is linear in the stream,
// memory linear in the grammar, and nothing in it is a pointer that the garbage collector must follow.
// It does not bound memory (see Bytes), do I/O, or know what the symbols mean.
package sequitur
