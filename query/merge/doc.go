// Package merge adds up how often each path ran in several runs, processes or hosts: path profiles
// and whole program paths become one path profile.
//
// Images are the same if their build ids are; other builds stand beside each other. A routine is
// known by its image and its entry, a path by the blocks that it runs. It promises that no count is
// added to that of another path: where a file numbers the paths of a routine otherwise, those paths
// are translated by their blocks or the file is refused by name. Sums stop at 2^64-1. It builds on
// any system.
package merge
