// Package target is the process that is traced: its identity, its executable and where that is
// mapped, its life and death. A process is held by a descriptor and told apart from a later one
// with its number by its start time; its files are opened through /proc/PID, never by a path that
// it controls. The package reads; it changes nothing in a process, but for starting one and letting
// it go.
package target
