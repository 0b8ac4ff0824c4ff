// Package wpp is the whole program path as something to keep and to read: the tables of a program
// and, for each thread, the grammar of its paths as a DAG (Larus 1999, section 3.3).
//
// It promises that a snapshot that Check accepts needs no checking again, and that nothing here
// recurses on, or takes time in proportion to, what a grammar expands to, but for Expand. It knows
// no file: package format reads and writes one, package store keeps one on the disk, package
// compact makes one smaller. It does not trace, compress streams (see sequitur) or answer questions
// (see query), and builds on any system.
package wpp
