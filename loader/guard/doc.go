// Package guard does for a process what has to be done even if wpptrace is gone: a process of its
// own, which nobody has reason to kill, puts the probes in and takes them out, and lets go on whom
// the BPF program has stopped. wpptrace asks for it; should wpptrace die, by kill -9 too, the guard
// undoes all that stands.
//
// The kernel takes probes out with the descriptor of their link, but not for a thread that is being
// killed: it gives up on the way, and breakpoints stay in the process. So wpptrace never has such a
// descriptor, but of probes in its own memory.
package guard
