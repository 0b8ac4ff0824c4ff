// Package source says, for snapshots, of which source lines and inlined calls the instructions of
// routines are, by the debug information of their images, and what of that is missing and why.
//
// It promises that each routine is looked at once, whatever snapshots are made; and that a hostile
// file ends in missing lines, never in a panic.
package source
