// Package pathcount counts some paths of a process, the interesting ones, in the kernel, by probes
// that tell these paths from all others and do nothing else. Run puts them in and returns how often
// each path ran, and all others of its routine together, if that is asked for.
package pathcount
