// Package sample knows where the CPU time of a process goes. A Sampler has each CPU count, once a
// period, where the process is, if it is its turn there: in the kernel, at which address of which
// image, or in code of no file. Counts are what came up, as data; samples.Share
// says how sure a share of them is.
//
// The clocks are perf events of the kind cpu-clock, which take no counters of the processor, so
// that they run in virtual machines too. What they count goes to a BPF program and not to perf's
// buffers: user space is not woken, and reads a few kilobytes when it likes.
//
// # Clocks of CPUs, not of threads
//
// A clock of a thread is to be stopped and started at each switch to another thread. That was
// measured with two threads that wake each other, on a virtual machine: a switch takes 0.5 us more
// where there is a clock that is off, 1.2 us where it is on, and 3.6 us where it is the first timer
// to expire, as it is above the frequency of the scheduler's tick. A server that is woken 20,000
// times a second would be slowed down by 1 to 8 %, however seldom a sample is taken. A clock of a
// CPU costs a process its samples and nothing else. It sees new threads at once, and misses none;
// that a thread ends, that the process calls exec and that it forks is nothing to it.
//
// A sample interrupts whoever runs. What that takes is measured, and the period is such that it
// takes at most a share of the time of each CPU, and so of the process's (Options.Share). The more
// CPUs there are, the longer is the period, for those that idle are woken by it.
package sample
