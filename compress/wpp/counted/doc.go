// Package counted is the section of a snapshot that says how often some blocks of the program ran
// between the windows of a recording: they were counted in slots of time, in which nothing was
// recorded. How often they ran in windows is in the grammars. Together they say how often anything
// ran in all.
//
// Counts that Of returns refer to nothing that their snapshot does not have. The package builds on
// any system.
package counted

//go:generate protoc --go_out=. --go_opt=paths=source_relative counted.proto
