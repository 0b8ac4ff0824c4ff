// Package bpf holds the tracer's BPF programs, the structures that they share with Go, and the
// generated bindings, which are committed: building wpptrace needs no clang. The one that traces
// says which witness was hit, which way it went and in which activation (package wire has the
// words); it keeps no path, and of the stack the last activation with its callers, which it reads
// again wherever these may be others. The C of a hit (hit.h) compiles for user space as well: see
// package usermode. The other one (family.bpf.c) knows the processes that a traced one has started,
// and stops each before its first instruction.
package bpf

//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type site -type call -type call_table -type library_table -type ending_flag -type batch -type life -type loss -type stop -type metric -type site_flag -type site_none -type from Tracer wpptrace.bpf.c
//go:generate go tool bpf2go -cc clang-19 -cflags "-O2 -g -Wall -mcpu=v3 -I/usr/include/x86_64-linux-gnu" -target amd64 -type news -type family_event -type family_table -type obstacle Family family.bpf.c
