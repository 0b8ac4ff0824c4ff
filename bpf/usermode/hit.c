//go:build linux && cgo

/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What env.h asks for, for a simulated process. The go command does not see that this file depends
 * on the headers one folder up: what makes it compile anew is that package bpf, with the object
 * that go generate makes of the same headers, has changed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "hit.h"
#include "../env.h"
#include "_cgo_export.h"

#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

static _Thread_local uintptr_t machine;
static _Thread_local __u64 image_base, image_size;

static void add(enum metric m, __u64 n)
{
	countMetric(machine, m, n);
}
static void count(enum metric m)
{
	add(m, 1);
}
static int ends_behind(enum part p)
{
	return 0;
}
static long read_user(void *to, __u32 size, __u64 from)
{
	__u64 word;

	for (__u32 at = 0, n; at < size; at += n) {
		n = size - at < sizeof(word) ? size - at : sizeof(word);
		if (readMemory(machine, from + at, n, &word)) {
			memset(to, 0, size); /* as the kernel does */
			return -1;
		}
		memcpy((char *)to + at, &word, n);
	}
	return 0;
}
static __u64 place(__u64 address)
{
	return address - image_base < image_size ? address - image_base : NOWHERE;
}
static __u64 bias_of(__u32 library)
{
	return image_base;
}
static __u64 call_at(__u64 key)
{
	struct call found;

	return key != NOWHERE && findCall(machine, key, &found) ? call_info(&found) : 0;
}
static long output(void *record, __u64 n, __u64 most)
{
	assert(n <= most);
	return sendRecord(machine, record, RECORD_HEADER + n * sizeof(__u64));
}
static int overflows(void)
{
	return keepsRests(machine);
}
static long output_overflow(void *record, __u64 n, __u64 most)
{
	assert(n <= most);
	return keepRecord(machine, record, RECORD_HEADER + n * sizeof(__u64));
}
static void note_loss(struct batch *b, __u64 hits)
{
	loseHits(machine, b->tid, b->hits, b->lost, hits);
}
static int takes_values(void)
{
	return takesValues(machine);
}
static __u64 fs_base(void)
{
	return fsBase(machine);
}
static const struct load_step *step_at(__u32 index)
{
	static _Thread_local struct load_step step;

	return loadStep(machine, index, &step) ? &step : 0;
}
static __u32 case_at(__u32 index)
{
	return loadCase(machine, index);
}
static __u32 continuation(__u64 key)
{
	return key == NOWHERE ? 0 : continuationOf(machine, key);
}
static __u64 load_register(struct registers *regs, __u32 number)
{
#define REGISTER_BY_NUMBER(n, name) [n] = regs->name,
	const __u64 by_number[16] = {EACH_REGISTER(REGISTER_BY_NUMBER)};

	return by_number[number & 15];
}
static __u64 register_value(struct registers *regs, __u32 number)
{
	return load_register(regs, number);
}
#define bound_index(n, size) assert((n) < (size))
#define loop(n, step, ctx) for (__u32 i_ = 0; i_ < (n) && !step(i_, ctx); i_++)

#include "../hit.h"

/* What is remembered of a thread, in one piece. */
struct remembered {
	struct thread thread;
	struct looking looking;
};

static struct looking *looking_slot(const struct thread *t)
{
	return &((struct remembered *)t)->looking;
}

static void enter(struct machine m)
{
	machine = m.handle;
	image_base = m.base;
	image_size = m.size;
}

struct thread *usermode_thread(__u32 tid, __u64 started, int resync)
{
	struct remembered *r = malloc(sizeof(*r));

	if (!r)
		abort();
	memset(r, 0xa5, sizeof(*r)); /* what another thread has left */
	r->thread.sending = 0;
	init_thread(&r->thread, tid, started, resync);
	return &r->thread;
}

void usermode_hit(
	struct machine m, struct thread *t, struct registers *regs, const struct site *s, __u32 id)
{
	enter(m);
	report(regs, t, s, id);
}

void usermode_look(struct machine m, struct thread *t, struct registers *regs, const struct look *l,
	__u32 cookie, int extra)
{
	enter(m);
	look(regs, t, l, cookie, t->batch.hits + !extra);
}

/* As drain, on_signal_deliver and on_exit of wpptrace.bpf.c. */
void usermode_drain(struct machine m, struct thread *t)
{
	enter(m);
	send_rest(t, 0, 0);
}

void usermode_signal(
	struct machine m, struct thread *t, struct registers *regs, __u32 signal, __u64 blocked)
{
	__u64 pc;

	enter(m);
	pc = place(regs->REG_PC);
	if (pc != NOWHERE)
		take_signal(t, regs, pc, signal, 0);
	else
		note_handler(t, regs, signal, blocked);
}

void usermode_faulted(struct machine m, struct thread *t, struct registers *regs)
{
	enter(m);
	take_signal(t, regs, place(regs->REG_PC), 11, 1);
	t->faulted = place(regs->REG_PC);
}

void usermode_fault(struct machine m, struct thread *t, __u64 sp)
{
	enter(m);
	take_fault(t, sp);
}

void usermode_exit(struct machine m, struct thread *t, struct registers *regs, __u64 blocked)
{
	struct ending e = {.known = 1, .call = SYSCALL_EXIT, .blocked = blocked};

	enter(m);
	e.pc = place(regs->REG_PC);
	end_thread(t, regs, &e);
}

__u64 usermode_condition(__u8 code, __u64 flags)
{
	return condition(code, flags);
}

#define WHOLE(s) {#s, "", 0, sizeof(struct s)}
#define FIELD(s, f) {#s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f)}
static const struct field fields[] = {
	WHOLE(site),
	FIELD(site, offset),
	FIELD(site, routine),
	FIELD(site, base),
	FIELD(site, condition),
	FIELD(site, flags),
	FIELD(site, capture_reg),
	FIELD(site, capture_index),
	FIELD(site, capture_scale),
	FIELD(site, capture_size),
	FIELD(site, library),
	FIELD(site, capture_disp),
	FIELD(site, stays),
	FIELD(site, next),
	FIELD(site, caller),
	WHOLE(call),
	FIELD(call, address),
	FIELD(call, info),
	FIELD(call, caller),
	WHOLE(batch),
	FIELD(batch, tid),
	FIELD(batch, count),
	FIELD(batch, started),
	FIELD(batch, sequence),
	FIELD(batch, hits),
	FIELD(batch, lost),
	FIELD(batch, events),
	WHOLE(life),
	FIELD(life, started),
	FIELD(life, tid),
	WHOLE(loss),
	FIELD(loss, hits),
	FIELD(loss, lost),
	WHOLE(thread),
	FIELD(thread, cfa),
	FIELD(thread, hash),
	FIELD(thread, routine),
	FIELD(thread, resync),
	FIELD(thread, last),
	FIELD(thread, last_captured),
	FIELD(thread, repeats),
	FIELD(thread, stays),
	FIELD(thread, next_cfa),
	FIELD(thread, next_return),
	FIELD(thread, sent),
	FIELD(thread, records),
	FIELD(thread, handlers),
	FIELD(thread, sending),
	FIELD(thread, restorer),
	FIELD(thread, near_at),
	FIELD(thread, near_size),
	FIELD(thread, near),
	FIELD(thread, chain_cfa),
	FIELD(thread, chain_len),
	FIELD(thread, chain_last),
	FIELD(thread, chain_known),
	FIELD(thread, chain),
	FIELD(thread, interrupted),
	FIELD(thread, taken),
	FIELD(thread, taken_signal),
	FIELD(thread, killed_returns),
	FIELD(thread, killed_at),
	FIELD(thread, killed_hits),
	FIELD(thread, faulted),
	FIELD(thread, unseen_signal),
	FIELD(thread, untimed),
	FIELD(thread, batch),
	WHOLE(look),
	FIELD(look, first),
	FIELD(look, behind),
	FIELD(look, flags),
	FIELD(look, condition),
	FIELD(look, library),
	FIELD(look, unused),
	WHOLE(load_step),
	FIELD(load_step, op),
	FIELD(load_step, dst),
	FIELD(load_step, a),
	FIELD(load_step, b),
	FIELD(load_step, scale),
	FIELD(load_step, size),
	FIELD(load_step, sign),
	FIELD(load_step, condition),
	FIELD(load_step, imm),
	FIELD(load_step, jump),
	WHOLE(states),
	FIELD(states, tid),
	FIELD(states, count),
	FIELD(states, started),
	FIELD(states, sequence),
	FIELD(states, hits),
	FIELD(states, lost),
	FIELD(states, words),
};

const struct field *usermode_fields(size_t *count)
{
	*count = sizeof(fields) / sizeof(fields[0]);
	return fields;
}
