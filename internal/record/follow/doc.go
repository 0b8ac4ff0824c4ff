// Package follow records a process, those that it starts, and what any of them becomes by exec:
// each program in each process is a recording of its own, with a snapshot of its own. A process
// stands where it begins until its recording has.
package follow
