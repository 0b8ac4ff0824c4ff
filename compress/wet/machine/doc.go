// Package machine emulates decoded instructions of x86-64: it says of each value whether it is
// confirmed, unconfirmed or unknown. Recording and asking use it alike, on any system: what is
// stored relies on its giving the same for ever. It decodes nothing.
package machine
