// Package listing prints source files and instructions of a recorded program with how often they
// ran: a snapshot's answer beside the file that it was recorded of, which is another version only
// if that is said.
//
// It opens files as the user: who calls it has no capabilities.
package listing
