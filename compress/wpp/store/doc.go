// Package store keeps snapshots in files: it opens them by name, with errors that say what to do,
// writes them atomically and durably, says beforehand whether it could (CheckOutput), and takes
// parts of one that is still being recorded.
//
// It promises that WriteFile leaves either the new snapshot whole or the old one, and that what a
// Draft has taken is on the disk, readable whatever happens next. What the bytes of a file mean is
// package format's.
package store
