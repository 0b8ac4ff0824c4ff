/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the C of a hit needs of where it runs. Who includes hit.h defines these: for the kernel
 * wpptrace.bpf.c, for a simulated process usermode/hit.c. Besides, it defines two macros before it
 * includes hit.h:
 *
 *   bound_index(n, size)  shows the verifier that index n is below size, a power of two
 *   loop(n, step, ctx)    calls step(i, ctx) for i from 0 to n-1, until it returns 1
 */
#ifndef WPPTRACE_ENV_H
#define WPPTRACE_ENV_H

#include "types.h"

/* count counts a failure. */
static void count(enum metric m);

/* add counts n of them. */
static void add(enum metric m, __u64 n);

/* ends_behind reports whether the hit ends behind this part of it, as it does where its parts are
 * measured. */
static int ends_behind(enum part p);

/* read_user reads size bytes of the process's memory. It returns 0, or an error, and zeroes to. */
static long read_user(void *to, __u32 size, __u64 from);

/* register_value is what a register holds, by its hardware number. */
static __u64 register_value(struct registers *regs, __u32 number);

/* load_register is the same, for where it has to be fast. */
static __u64 load_register(struct registers *regs, __u32 number);

/* place is the link-time address, with the offset of its image, of an address in the process's
 * memory; NOWHERE: it is in external code. */
static __u64 place(__u64 address);

/* bias_of is the load address minus the link-time address of an image: 0, or the number of a
 * library. */
static __u64 bias_of(__u32 library);

/* call_at says what is known of the call that returns to a place: see call_info. */
static __u64 call_at(__u64 place);

/* output sends a record of n words of 8 bytes behind its header, of most at most, through the ring
 * buffer. It returns 0, or an error: there is no room. */
static long output(void *record, __u64 n, __u64 most);

/* overflows reports whether what is left of a thread goes to the overflow ring, whatever room the
 * ring buffer has. */
static int overflows(void);

/* output_overflow sends a record through the overflow ring, as output. */
static long output_overflow(void *record, __u64 n, __u64 most);

/* note_loss notes that the thread of a batch has lost so many hits, where the thread's death cannot
 * hide it. */
static void note_loss(struct batch *b, __u64 hits);

/* takes_values reports whether hits are to take states. */
static int takes_values(void);

struct thread;
struct looking;

/* looking_slot is the memory for the states of a thread, which may hold another's; 0: there is
 * none for it. */
static struct looking *looking_slot(const struct thread *t);

/* fs_base is the address that the fs segment of the thread begins at. */
static __u64 fs_base(void);

/* step_at is the step of a load program with an index, 0 beyond the last, */
static const struct load_step *step_at(__u32 index);

/* case_at where a LOAD_SWITCH goes on: the index of a step; 0: not known, */
static __u32 case_at(__u32 index);

/* and continuation where a LOAD_RETURN to a place does; 0: not known. */
static __u32 continuation(__u64 place);

#endif
