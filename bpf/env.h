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

/* bias_of is the load address minus the link-time address of the image that a site is in. */
static __u64 bias_of(const struct site *s);

/* call_at says what is known of the call that returns to a place: see call_info. */
static __u64 call_at(__u64 place);

/* output sends a batch of n events through the ring buffer. It returns 0, or an error: there is no
 * room. */
static long output(struct batch *b, __u64 n);

/* overflows reports whether what is left of a thread goes to the overflow ring, whatever room the
 * ring buffer has. */
static int overflows(void);

/* output_overflow sends a batch of n events through the overflow ring, as output. */
static long output_overflow(struct batch *b, __u64 n);

/* note_loss notes that the thread of a batch has lost so many hits, where the thread's death cannot
 * hide it. */
static void note_loss(struct batch *b, __u64 hits);

#endif
