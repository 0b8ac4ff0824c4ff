// Package target is the process that is traced: its identity, its executable and where that is
// mapped, its life and death. A process is held by a descriptor, which distinguishes it from a
// later one with its number; its files are opened through /proc/PID, never by a path that it
// controls. The package reads; it changes nothing in a process, but for starting one and letting it
// go.
package target
