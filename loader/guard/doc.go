// Package guard undoes what wpptrace has done to a process, even if wpptrace is killed. A helper
// process, the guard, puts the probes in and takes them out, and continues the processes that the
// BPF program has stopped. wpptrace sends it requests over a socket; when the socket closes, after
// kill -9 too, the guard removes all probes and continues all stopped processes.
//
// The kernel removes probes when the descriptor of their link is closed, but not reliably for a
// thread that is being killed: it gives up on the way, and breakpoints stay in the process. So
// wpptrace itself never holds such a descriptor, except of probes in its own memory.
package guard
