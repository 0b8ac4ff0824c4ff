// Package family follows a process to those that it starts, to what these start, and to what any of
// them becomes by exec. Each is stopped before its first instruction, so that whoever hears of it
// here may trace it from there on, and let it go then; should we be gone, the guard lets all go.
//
// It does not trace. What is not to be stopped is not, and is told of: one that a debugger has, and
// the jobs of a shell on a terminal.
package family
