// Package compact makes snapshots smaller, once, after they are recorded: it rebuilds grammars with
// Re-Pair, which sees the whole stream where SEQUITUR saw a symbol at a time.
//
// It promises that a grammar derives what it did, and takes no more bytes in a file.
package compact
