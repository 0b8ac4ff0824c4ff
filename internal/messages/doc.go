// Package messages prints what happens during a recording, a message a line, and at its end the
// report, or the JSON object, that was asked for.
//
// The texts name the flags of wpptrace that a user may give instead. A Printer is told what flags
// were given, and how an error is explained, and prints in this way for all commands that record.
// It belongs to one goroutine at a time. Longer texts are those of package recordreport.
package messages
