// Package uprobe puts a BPF program at places of a file, by the mechanism that the running kernel
// has for it: one link for all places, or a perf event for each. It is the one place that knows
// what kernels differ in there. What it promises: all places have the program, or none has.
package uprobe
