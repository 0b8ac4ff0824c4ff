// Package bpf holds the tracer's BPF programs, the structures that they share with Go, and the
// generated bindings, which are committed: building wpptrace needs no clang. The program that
// traces (wpptrace.bpf.c) reports which site was hit, with which outcome and in which activation
// (package wire has the events). It keeps no path, and of the stack only the last activation with
// its callers, which it reads again wherever these may be others. The other one (family.bpf.c)
// knows the processes that a traced one has started, and stops each before its first instruction. A
// third one (sample.bpf.c) counts where a process's CPU time goes, a fourth (count.bpf.c) how often
// paths run, and a fifth (first.bpf.c) knows which places have run at all.
//
//	arch_x86.h  what is of x86-64: registers, conditions, signal frames
//	types.h     the structures and events that C and Go share
//	env.h       what the C of a hit needs of where it runs
//	thread.h    what is remembered of a thread, and its batch of events
//	states.h    what a hit sees of registers and memory, where values are taken
//	hit.h       what happens at a hit, at a signal and at a thread's end
//	stop.h      who is stopped, and by whom
//	count.h     what happens at a hit where paths are counted
//
// thread.h, states.h and hit.h compile for user space as well: see package usermode.
package bpf

//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type site -type call -type call_table -type library_table -type ending_flag -type batch -type life -type loss -type stop -type metric -type site_flag -type site_none -type origin -type part -type calling -type call_bits -type look -type look_flag -type load_step -type load_op -type states -type cell -type load_limit -type sequence_table Tracer wpptrace.bpf.c
//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type news -type family_event -type family_table -type obstacle Family family.bpf.c
//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type sample_table Sample sample.bpf.c
//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type count_step -type count_metric -type count_cookie -type count_row Count count.bpf.c
//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type first_cookie -type first_report -type first_stack -type first_hit First first.bpf.c
