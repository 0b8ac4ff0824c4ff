/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What happens at a hit, at a signal and at a thread's end. Functions that are global, not static,
 * the verifier checks once, and not again with what each caller knows. */
#ifndef WPPTRACE_HIT_H
#define WPPTRACE_HIT_H

#include "states.h"

/* put_registers reports what registers held where the thread was interrupted, in the order of a
 * signal frame. */
__noinline int put_registers(struct thread *t)
{
	if (!t)
		return 0;
	for (int i = 0; i < FRAME_PC; i++)
		put(t, EVENT_REGISTER(t->interrupted[i]));
	return 0;
}

/* put_taken reports the registers that take_registers has saved. */
static __always_inline void put_taken(struct thread *t)
{
	for (int i = 0; i < FRAME_REGISTERS; i++)
		t->interrupted[i] = t->taken[i];
	put_registers(t);
}

/* Events by which send_rest reports a thread's end, at most: registers, Caller, End. */
#define END_EVENTS (FRAME_PC + 2)

/* has_registers reports whether registers go before a thread's last event (0: there is none). */
static __always_inline int has_registers(__u64 end)
{
	return end &&
		(EVENT_ORIGIN(end) == ORIGIN_INSIDE || EVENT_ORIGIN(end) == ORIGIN_RETURNS_TO_IMAGE);
}

/* send_rest hands over what is left of a thread, with a last event (0: none). If registers go
 * before that, or the thread ends in a handler, t->taken comes first, and in a handler what that
 * has interrupted. A thread that ends and a tracer that detaches may both call this, at the same
 * time on two processors: the second one leaves it to the first, and gets 0. */
__noinline int send_rest(struct thread *t, __u64 event, int in_handler)
{
	if (!t || __sync_lock_test_and_set(&t->sending, 1))
		return 0;
	put_repeats(t);
	if (in_handler || has_registers(event)) {
		make_room(t, END_EVENTS);
		put_taken(t);
	}
	if (in_handler)
		put(t, EVENT_CALLER(ORIGIN_HANDLER, t->interrupted[FRAME_PC]));
	if (event)
		put(t, event);
	hand_over(t);
	*(volatile __u64 *)&t->sending = 0;
	return 1;
}

/* is_restorer reports whether a handler that returns here returns from a signal. */
__noinline int is_restorer(__u64 ra)
{
	__u64 code = 0;

	return !read_user(&code, 8, ra) && returns_from_signal(code);
}

/* read_frame reads the registers in a signal frame. */
static __always_inline void read_frame(struct thread *t, __u64 cfa)
{
	if (read_user(t->interrupted, sizeof(t->interrupted), cfa + SIGNAL_FRAME_REGISTERS)) {
		count(METRIC_UNREADABLE);
		t->interrupted[FRAME_PC] = t->interrupted[FRAME_SP] = 0;
	}
}

/* take_registers saves the registers where a handler comes, or the thread ends: at pc, a place in
 * an image, or NOWHERE. */
static __always_inline void take_registers(struct thread *t, struct registers *regs, __u64 pc)
{
#pragma GCC unroll 16
	for (int i = 0; i < FRAME_PC; i++)
		t->taken[i] = load_register(regs, frame_number[i]);
	t->taken[FRAME_PC] = pc;
}

/* take_signal reports where a signal's handler comes, if it interrupts an image. */
static __always_inline void take_signal(
	struct thread *t, struct registers *regs, __u64 pc, __u32 signal, int fault)
{
	take_registers(t, regs, pc);
	t->taken_signal = signal;
	t->unseen_signal = 0;
	t->handlers++;
	t->next_cfa = 0;
	put_repeats(t);
	t->last = 0;
	make_room(t, FRAME_PC + 1);
	put_taken(t);
	put(t, EVENT_INTERRUPT(pc) | (fault ? EVENT_FAULTED : 0));
}

/* take_fault reports that an instruction of external code has faulted, and where the stack pointer
 * was: if that points to a return address, the address is not a stale one. */
static __always_inline void take_fault(struct thread *t, __u64 sp)
{
	put_repeats(t);
	t->last = 0;
	make_room(t, 1);
	put(t, EVENT_FAULT(sp));
}

/* Signals that cannot be blocked, SIGKILL and SIGSTOP, as a mask. */
#define NEVER_BLOCKED (1ULL << 8 | 1ULL << 18)

/* runs_handler reports whether a thread that blocks these signals is in a handler of this one (0:
 * none): while a handler runs its signal is blocked. Where all are blocked, as the C library does
 * where a thread ends, it is not known: 0. */
static __always_inline int runs_handler(__u64 signal, __u64 blocked)
{
	return signal && (blocked | NEVER_BLOCKED) != ~0ULL && blocked >> ((signal - 1) & 63) & 1;
}

/* An ending is where a thread comes to its end. */
struct ending {
	/* 0: not even what the thread did since its last event is known. */
	__u64 known;
	/* The place in an image, or NOWHERE. */
	__u64 pc;
	/* The system call that it is in, if any. */
	__u64 call;
	/* Blocked signals. */
	__u64 blocked;
};

/* return_to is the place that a return address leads to, if a call of a traced routine returns
 * there; else NOWHERE. */
static __always_inline __u64 return_to(__u64 ra)
{
	ra = place(ra);
	return call_at(ra) ? ra : NOWHERE;
}

/* called_from is where external code that has pushed nothing returns to in an image, by the stack
 * pointer; else NOWHERE. */
static __always_inline __u64 called_from(__u64 sp)
{
	__u64 ra = 0;

	return read_user(&ra, 8, sp) ? NOWHERE : return_to(ra);
}

/* note_return saves the return address of external code when a signal arrives that may end the
 * thread: before Linux 6.16 user memory is already gone when a thread ends. */
static __always_inline void note_return(struct thread *t, __u64 sp)
{
	t->unseen_signal = 0;
	t->killed_returns = called_from(sp);
	t->killed_at = sp;
	t->killed_hits = t->batch.hits;
}

/* note_handler saves the registers, too, when a handler begins in external code; blocked are the
 * signals that are. It does nothing inside a handler that has interrupted an image: the registers
 * that were saved there are still needed. */
static __always_inline void note_handler(
	struct thread *t, struct registers *regs, __u32 signal, __u64 blocked)
{
	t->next_cfa = 0;
	t->handlers++;
	if (runs_handler(t->taken_signal, blocked))
		return;
	note_return(t, register_value(regs, NUMBER_SP));
	t->taken_signal = 0;
	t->unseen_signal = signal;
	take_registers(t, regs, NOWHERE);
}

/* last_return is where a thread that ends in external code would have returned to, or NOWHERE. */
static __always_inline __u64 last_return(const struct thread *t, __u64 sp)
{
	__u64 ra = 0;

	if (!read_user(&ra, 8, sp))
		return return_to(ra);
	return sp == t->killed_at && t->killed_hits == t->batch.hits ? t->killed_returns : NOWHERE;
}

/* end_thread hands over what is left of a thread, and where it ends. */
static __always_inline int end_thread(
	struct thread *t, struct registers *regs, const struct ending *e)
{
	int by_itself = e->call == SYSCALL_EXIT || e->call == SYSCALL_EXIT_GROUP;
	int handler = runs_handler(t->taken_signal, e->blocked);
	__u64 from;

	if (!e->known)
		return send_rest(t, 0, 0);
	if (e->pc != NOWHERE) {
		take_registers(t, regs, e->pc);
		return send_rest(
			t, EVENT_END(ORIGIN_INSIDE, e->pc) | (e->pc == t->faulted ? EVENT_FAULTED : 0), 0);
	}
	if (t->killed_hits == t->batch.hits && runs_handler(t->unseen_signal, e->blocked))
		return send_rest(t,
			t->killed_returns != NOWHERE ? EVENT_END(ORIGIN_RETURNS_TO_IMAGE, t->killed_returns)
										 : EVENT_END(ORIGIN_KILLED, 0),
			0);
	from = by_itself || handler ? NOWHERE : last_return(t, register_value(regs, NUMBER_SP));
	if (from != NOWHERE) {
		take_registers(t, regs, NOWHERE);
		return send_rest(t, EVENT_END(ORIGIN_RETURNS_TO_IMAGE, from), 0);
	}
	return send_rest(t, EVENT_END(by_itself ? ORIGIN_OUTSIDE : ORIGIN_KILLED, 0), handler);
}

/* handler_caller is the event of what a signal handler has interrupted, instead of a caller. */
static __always_inline __u64 handler_caller(const struct thread *t)
{
	__u64 pc = place(t->interrupted[FRAME_PC]), from;

	if (pc != NOWHERE)
		return EVENT_CALLER(ORIGIN_HANDLER, pc);
	from = called_from(t->interrupted[FRAME_SP]);
	return from != NOWHERE ? EVENT_CALLER(ORIGIN_RETURNS_TO_IMAGE, from)
						   : EVENT_CALLER(ORIGIN_HANDLER_OUTSIDE, 0);
}

/* caller_event is the event of a return address: it leads into an image, elsewhere, or out of a
 * signal handler to what that interrupted. */
static __always_inline __u64 caller_event(struct thread *t, __u64 ra, __u64 cfa)
{
	if (ra && (ra == t->restorer || is_restorer(ra))) {
		t->restorer = ra;
		read_frame(t, cfa);
		return handler_caller(t);
	}
	ra = place(ra);
	return ra != NOWHERE ? EVENT_CALLER(ORIGIN_INSIDE, ra) : EVENT_CALLER(ORIGIN_OUTSIDE, 0);
}

static __always_inline __u64 mix(__u64 hash, __u64 v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* read_return reads the return address of an activation, and what follows on the stack with it:
 * those of its callers may lie there. */
static __always_inline long read_return(struct thread *t, __u64 *ra, __u64 cfa)
{
	__u64 at = RETURN_ADDRESS_AT(cfa), offset = at - t->near_at;
	long failed = 0;

	if (offset >= t->near_size || offset & 7) {
		offset = 0;
		t->near_at = at;
		t->near_size = sizeof(t->near);
		if (read_user(t->near, sizeof(t->near), at)) {
			/* The stack ends before that, or a page of it is not in memory. */
			t->near_size = sizeof(t->near[0]);
			failed = read_user(t->near, sizeof(t->near[0]), at);
		}
	}
	offset >>= 3;
	bound_index(offset, NEAR);
	*ra = t->near[offset];
	return failed;
}

/* only_caller is the return address of all activations of the site's routine; 0: there may be
 * others. */
static __always_inline __u64 only_caller(const struct site *s)
{
	return s->caller ? CALLING_RETURN(s->caller) + bias_of(s->library) : 0;
}

/* find_chain collects the return address of the activation, which is only if that is not 0, and
 * those of the callers that may have had no event yet. It returns a hash of them. */
static __always_inline __u64 find_chain(struct thread *t, __u64 cfa, __u64 only)
{
	__u64 hash = 0, n = 0, ra = 0, known = 0;

	t->near_size = 0;
	for (int i = 0; i < CHAIN_MAX; i++) {
		ra = only;
		if (!only && read_return(t, &ra, cfa)) {
			count(METRIC_UNREADABLE);
			ra = 0;
		}
		if (i == 0 && t->cfa == cfa && t->chain_len == 1 && t->chain[0] == ra && ra != t->restorer)
			return t->hash; /* nothing has changed since */
		t->chain[i] = ra;
		hash = mix(hash, ra);
		n = i + 1;
		__u64 call = call_at(place(ra));
		known = !!call;
		if (!call || call & CALL_REPORTED)
			break;
		cfa += CALL_DEPTH(call);
		only = CALL_CALLER(call) ? ra + CALL_CALLER(call) : 0;
		if (i == CHAIN_MAX - 1)
			count(METRIC_LONG_CHAIN);
	}
	t->chain_last = ra;
	if (ra && ra == t->restorer) {
		/* Perhaps the same handler on the same stack, but it interrupted something else. */
		read_frame(t, cfa);
		for (int i = 0; i < FRAME_REGISTERS; i++)
			hash = mix(hash, t->interrupted[i]);
		hash = mix(hash, handler_caller(t)); /* the same registers, in another call */
	}
	t->chain_len = n;
	t->chain_known = known;
	t->chain_cfa = cfa;
	return hash;
}

/* put_chain reports the chain; last is the event of its last caller, unless that is a known call.
 */
static __always_inline void put_chain(struct thread *t, __u64 last)
{
	for (__u64 i = 0; i < CHAIN_MAX; i++) {
		if (i >= t->chain_len)
			break;
		__u64 ra = t->chain[i];
		if (i + 1 == t->chain_len && !t->chain_known)
			put(t, last);
		else
			put(t, EVENT_CALLER(ORIGIN_INSIDE, place(ra)));
	}
}

struct resync {
	struct thread *t;
	/* Of the activation whose caller comes next. */
	__u64 cfa;
};

/* resync_step reports one caller of a thread that is seen for the first time. */
static long resync_step(__u32 i, struct resync *r)
{
	__u64 ra = 0, at, call, event;

	if (r->t->resync)
		return 1; /* lost in the middle */
	if (i == RESYNC_MAX - 1) {
		put(r->t, EVENT_CALLER(ORIGIN_RESYNC | ORIGIN_TRUNCATED, 0));
		return 1;
	}
	if (read_user(&ra, 8, RETURN_ADDRESS_AT(r->cfa))) {
		put(r->t, EVENT_CALLER(ORIGIN_RESYNC | ORIGIN_UNREADABLE, 0));
		return 1;
	}
	at = place(ra);
	call = call_at(at);
	event = call ? EVENT_CALLER(ORIGIN_INSIDE, at) : caller_event(r->t, ra, r->cfa);
	put(r->t, event | (__u64)ORIGIN_RESYNC << 48);
	if (!call)
		return 1;
	r->cfa += CALL_DEPTH(call);
	return 0;
}

/* put_callers reports who has called an activation, unless that was reported last. */
__noinline int put_callers(struct thread *t, const struct site *s, __u64 cfa)
{
	__u64 last = 0;

	if (!t || !s)
		return 0;
	if (!t->resync) {
		__u64 hash = find_chain(t, cfa, only_caller(s));
		if (t->cfa == cfa && t->hash == hash && t->routine == s->routine)
			return 0;
		if (!t->chain_known)
			last = caller_event(t, t->chain_last, t->chain_cfa);
		put_repeats(t);
		if (EVENT_ORIGIN(last) == ORIGIN_HANDLER)
			t->taken_signal = 0; /* its own events report it */
		if (EVENT_ORIGIN(last) == ORIGIN_HANDLER || EVENT_ORIGIN(last) == ORIGIN_RETURNS_TO_IMAGE) {
			make_room(t, FRAME_PC);
			if (!t->resync)
				put_registers(t);
		}
		make_room(t, t->chain_len + 2);
		t->hash = hash;
	}
	t->last = 0;
	if (t->resync) {
		struct resync r = {t, cfa};
		put_repeats(t);
		t->resync = 0;
		t->cfa = 0;
		loop(RESYNC_MAX, resync_step, &r);
		return 0;
	}
	t->cfa = cfa;
	t->routine = s->routine;
	put_chain(t, last);
	return 0;
}

/* put_known_caller reports who has called an activation, unless that was reported last, where the
 * return address need not be read: the plan knows it, or the event before says so (rules 14 and
 * 15). It returns 0 elsewhere. */
static __always_inline int put_known_caller(struct thread *t, const struct site *s, __u64 cfa)
{
	__u64 ra;

	if (CALLING_AFTER_EVENT(s->caller))
		ra = CALLING_RETURN(s->caller) + bias_of(s->library);
	else if (cfa == t->next_cfa)
		ra = t->next_return;
	else
		return 0;
	if (t->cfa == cfa && t->routine == s->routine && t->chain_len == 1 && t->chain[0] == ra)
		return 1;
	put_repeats(t);
	make_room(t, 3);
	if (t->resync)
		return 0;
	t->cfa = t->chain_cfa = cfa;
	t->routine = s->routine;
	t->chain[0] = t->chain_last = ra;
	t->chain_len = t->chain_known = 1;
	t->hash = mix(0, ra);
	t->last = 0;
	put(t, EVENT_CALLER(ORIGIN_INSIDE, place(ra)));
	return 1;
}

/* note_next notes what comes after a hit, as far as the plan knows. */
static __always_inline void note_next(struct thread *t, const struct site *s, __u64 cfa, __u64 out)
{
	__u64 next = s->next[out & 1];

	t->stays = s->stays >> out & 1;
	t->next_cfa = next ? cfa - CALLING_DEPTH(next) : 0;
	t->next_return = CALLING_RETURN(next) + bias_of(s->library);
}

/* capture_size is the size of what a site captures, bytes. */
static __always_inline __u32 capture_size(const struct site *s)
{
	__u32 size = s->capture_size;

	return size < 1 || size > 8 ? 8 : size; /* for the verifier: it is 1, 2, 4 or 8 */
}

/* read_captured reads the memory that a site captures. It returns 0, or an error. */
static __noinline long read_captured(struct registers *regs, const struct site *s, __u64 *value)
{
	__u64 address;
	__u32 size;

	if (!s || !value)
		return 0;
	size = capture_size(s);
	address = (__s64)s->capture_disp;
	if (s->flags & SITE_CAPTURE_RIP)
		address += bias_of(s->library);
	if (s->capture_reg < NO_REG)
		address += register_value(regs, s->capture_reg);
	if (s->capture_index < NO_REG)
		address += register_value(regs, s->capture_index) * s->capture_scale;
	return read_user(value, size, address);
}
/* captured_value is the value that a site captures, or VALUE_UNREADABLE. */
static __always_inline __u64 captured_value(struct registers *regs, const struct site *s)
{
	__u64 value = 0;

	if (s->flags & SITE_CAPTURE_MEMORY) {
		if (read_captured(regs, s, &value))
			return VALUE_UNREADABLE;
	} else {
		value = load_register(regs, s->capture_reg);
		if (s->capture_index < NO_REG)
			value -= register_value(regs, s->capture_index);
	}
	value &= ~0ULL >> (64 - 8 * capture_size(s));
	if (s->flags & SITE_CAPTURE_TARGET)
		value -= bias_of(s->library);
	return EVENT_LOW(60, value);
}

/* drop_hit counts a hit that no event reports. */
static __always_inline void drop_hit(struct thread *t)
{
	t->batch.hits++;
	t->batch.lost++;
	t->sent++;
	note_loss(&t->batch, 1);
}

/* drop_unknown_hit drops a hit of which the activation, or the captured value, could not be read.
 * What came before it is sent, so that the loss is where it belongs, and nothing is remembered. */
__noinline int drop_unknown_hit(struct thread *t)
{
	if (!t)
		return 0;
	count(METRIC_DROPPED_HITS);
	put_repeats(t);
	hand_over(t);
	reset_thread(t);
	drop_hit(t);
	return 0;
}

/* is_last reports whether the activation is certain to be that of the last hit, and its callers
 * known. To find that out by its return address is the costliest part of a hit. */
static __always_inline int is_last(struct thread *t, const struct site *s, __u64 cfa)
{
	return t->stays && t->cfa == cfa && t->routine == s->routine;
}

/* put_hit puts the events of a hit into the batch. It returns 0 if a loss came in between: what was
 * put before it is gone. */
static __always_inline int put_hit(struct registers *regs, struct thread *t, const struct site *s,
	__u64 cfa, __u64 event, __u64 out)
{
	__u64 captured = 0;

	if (t->resync || (s->flags & SITE_FIRST && !is_last(t, s, cfa) && !put_known_caller(t, s, cfa)))
		put_callers(t, s, cfa);
	if (t->resync)
		return 0;
	note_next(t, s, cfa, out);
	if (ends_behind(PART_CALLERS))
		return 1;
	if (s->flags & (SITE_CAPTURE | SITE_VALUE) &&
		(s->flags & SITE_VALUE || out == !!(s->flags & SITE_CAPTURE_TAKEN))) {
		__u64 value = captured_value(regs, s);

		if (value == VALUE_UNREADABLE) {
			drop_unknown_hit(t);
			return 1;
		}
		captured = EVENT_CAPTURED(value);
	}
	if (ends_behind(PART_CAPTURE))
		return 1;
	if (event == t->last && captured == t->last_captured) {
		t->repeats++;
		t->batch.hits++;
		return 1;
	}
	put_repeats(t);
	make_room(t, captured ? 2 : 1);
	if (t->resync)
		return 0;
	if (captured)
		put(t, captured);
	t->last = event;
	t->last_captured = captured;
	t->batch.hits++;
	put(t, event);
	return 1;
}

/* report makes the event of a hit, as package wire knows it: activation, site, outcome. */
static __always_inline void report(
	struct registers *regs, struct thread *t, const struct site *s, __u32 id)
{
	/* A field of the context has to be loaded before it is chosen. */
	__u64 sp = *(volatile __u64 *)&regs->REG_SP, fp = *(volatile __u64 *)&regs->REG_FP;
	__u64 flags = *(volatile __u64 *)&regs->REG_FLAGS;
	__u64 cfa = (s->base == NUMBER_FP ? fp : sp) + (__s64)s->offset;
	__u64 out = s->condition < CONDITION_NONE ? condition(s->condition, flags) : 0;
	__u64 event;

	if (s->flags & SITE_SLOT && read_user(&cfa, 8, cfa)) {
		drop_unknown_hit(t);
		return;
	}
	event = EVENT_HIT(id, out, cfa);
	if (cfa >> 47)
		count(METRIC_HIGH_ADDRESS);
	if (cfa != t->cfa)
		t->cfa = 0; /* the remembered activation may be over: this one is not below it */
	if (ends_behind(PART_FRAME))
		return;
	for (int i = 0; i < 2; i++)
		if (put_hit(regs, t, s, cfa, event, out))
			return;
	drop_hit(t);
}

#endif
