// Package followfork follows a process to the processes that it starts, to what these start, and to
// the programs that any of them becomes by exec. Each is stopped before its first instruction, so
// that the caller may trace it from there on, and resumes it then; should we be gone, the guard
// resumes all.
//
// It does not trace. Some processes cannot be stopped: one that a debugger has, and the jobs of a
// shell on a terminal. They run on, and Started says why.
package followfork
