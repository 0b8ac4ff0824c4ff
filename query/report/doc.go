// Package report prints what queries find: tables 100 columns wide, JSON objects of named types,
// text and graphs of a snapshot's streams (Dump), and what a path is in words (Label).
//
// Names in a snapshot may be hostile, and are made harmless where text is printed; JSON spells them
// as they are. A writer's error is returned, and printing ends with it. It asks only what package
// query answers, and builds on any OS.
package report
