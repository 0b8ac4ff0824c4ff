/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What happens at a hit. The includer provides read_user, register_value, call_at, place, bias_of, output, keeps, keep, lost, count, loop and bound_index: the
 * kernel's in wpptrace.bpf.c, a simulated process's in usermode. place tells what an address in the memory of the process is at link time, with the
 * offset of its image, or NOWHERE. Functions that are global, not static, the verifier looks at once, and not with what each caller knows. */
#ifndef WPPTRACE_HIT_H
#define WPPTRACE_HIT_H

#include "thread.h"

/* condition has no branches: after the kernel's entry few of them are predicted. */
static __always_inline __u64 condition(__u8 code, __u64 flags)
{
	__u64 cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1, sf = flags >> 7 & 1, less = sf ^ (flags >> 11 & 1);
	__u64 all = (flags >> 11 & 1) | cf << 1 | zf << 2 | (cf | zf) << 3 | sf << 4 | pf << 5 | less << 6 | (zf | less) << 7;

	return (all >> (code >> 1) ^ code) & 1;
}

/* By their places in a signal frame, registers' hardware numbers. */
static const __u8 frame_number[FRAME_RIP] = {8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4};

/* put_registers says what registers held where the thread was interrupted, in the order of a signal frame. */
__noinline int put_registers(struct thread *t)
{
	if (!t)
		return 0;
	for (int i = 0; i < FRAME_RIP; i++)
		put(t, WORD_REGISTER(t->interrupted[i]));
	return 0;
}

/* put_taken says what has been noted of the registers. */
static __always_inline void put_taken(struct thread *t)
{
	for (int i = 0; i < FRAME_REGISTERS; i++)
		t->interrupted[i] = t->taken[i];
	put_registers(t);
}

/* What send_rest says of a thread's end takes so many words at most: registers, From, End. */
#define END_WORDS (FRAME_RIP + 2)

/* tells_registers: does a thread's last word, which may be none (0), come with the registers? */
static __always_inline int tells_registers(__u64 end)
{
	return end && (WORD_PLACE(end) == FROM_INSIDE || WORD_PLACE(end) == FROM_CALLED);
}

/* send_rest hands over what is left of a thread, with a last word (0: none). Before that it says what t->taken has of the registers, if the word is to come with
 * them or the thread ends in a handler, and then what that has interrupted. A thread that comes to its end and a tracer that takes itself off may both want to,
 * at the same time on two processors: the second one leaves it to the first, and gets 0. */
__noinline int send_rest(struct thread *t, __u64 word, int in_handler)
{
	if (!t || __sync_lock_test_and_set(&t->sending, 1))
		return 0;
	put_repeats(t);
	if (in_handler || tells_registers(word)) {
		make_room(t, END_WORDS);
		put_taken(t);
	}
	if (in_handler)
		put(t, WORD_FROM(FROM_HANDLER, t->interrupted[FRAME_RIP]));
	if (word)
		put(t, word);
	hand_over(t);
	*(volatile __u64 *)&t->sending = 0;
	return 1;
}

/* is_restorer: does a handler that returns here return from a signal? */
__noinline int is_restorer(__u64 ra)
{
	__u64 code = 0;

	/* mov $15, %rax (or %eax); syscall */
	return !read_user(&code, 8, ra) && (code == 0x0f0000000fc0c748ULL || (code & 0xffffffffffffffULL) == 0x050f0000000fb8ULL);
}

/* read_frame reads what a signal frame has of the registers. */
static __always_inline void read_frame(struct thread *t, __u64 cfa)
{
	if (read_user(t->interrupted, sizeof(t->interrupted), cfa + SIGNAL_FRAME_REGISTERS)) {
		count(METRIC_UNREADABLE);
		t->interrupted[FRAME_RIP] = t->interrupted[FRAME_RSP] = 0;
	}
}

/* take_registers notes what registers hold where a handler comes, or the thread ends: at rip, a place in an image. */
static __always_inline void take_registers(struct thread *t, struct registers *regs, __u64 rip)
{
	for (int i = 0; i < FRAME_RIP; i++)
		t->taken[i] = register_value(regs, frame_number[i]);
	t->taken[FRAME_RIP] = rip;
}

/* take_signal says where a signal's handler comes, if it interrupts an image. */
static __always_inline void take_signal(struct thread *t, struct registers *regs, __u64 rip, __u32 signal, int fault)
{
	take_registers(t, regs, rip);
	t->taken_signal = signal;
	t->unseen_signal = 0;
	put_repeats(t);
	t->last = 0;
	make_room(t, FRAME_RIP + 1);
	put_taken(t);
	put(t, WORD_INTERRUPT(rip) | (fault ? WORD_FAULTED : 0));
}

/* take_fault says that an instruction of code that is in no image has faulted, and where the stack pointer was: a return address that it points to is no left-over. */
static __always_inline void take_fault(struct thread *t, __u64 sp)
{
	put_repeats(t);
	t->last = 0;
	make_room(t, 1);
	put(t, WORD_FAULT(sp));
}

/* Signals that cannot be blocked, SIGKILL and SIGSTOP, as a mask. */
#define NEVER_BLOCKED (1ULL << 8 | 1ULL << 18)

/* runs_handler: is a thread that blocks these signals in a handler of this one, if any? While it runs its signal is blocked. Where all are, as the C library
 * has it where a thread ends, nothing tells. */
static __always_inline int runs_handler(__u64 signal, __u64 blocked)
{
	return signal && (blocked | NEVER_BLOCKED) != ~0ULL && blocked >> ((signal - 1) & 63) & 1;
}

/* By its hardware number. */
#define RSP 4

/* An ending is where a thread comes to its end. */
struct ending {
	__u64 known;   /* where that is; else not even what it did since its last word is */
	__u64 rip;     /* the place in an image, or NOWHERE */
	__u64 call;    /* the system call that it is in, if any */
	__u64 blocked; /* signals */
};

/* return_to is where a call returns to, by its return address, if that is in an image; else NOWHERE. */
static __always_inline __u64 return_to(__u64 ra)
{
	ra = place(ra);
	return call_at(ra) ? ra : NOWHERE;
}

/* called_from is where code that is in no image, and has pushed nothing, returns to in one, by the stack pointer; else NOWHERE. */
static __always_inline __u64 called_from(__u64 sp)
{
	__u64 ra = 0;

	return read_user(&ra, 8, sp) ? NOWHERE : return_to(ra);
}

/* note_return notes that, where a signal comes that may end the thread: its memory may be gone then (before Linux 6.16). */
static __always_inline void note_return(struct thread *t, __u64 sp)
{
	t->unseen_signal = 0;
	t->killed_returns = called_from(sp);
	t->killed_at = sp;
	t->killed_hits = t->batch.hits;
}

/* note_handler notes that, and what registers held, where a signal's handler comes that may end the thread, while these are blocked; not in a handler that has
 * interrupted an image: what registers held where that came is wanted yet. */
static __always_inline void note_handler(struct thread *t, struct registers *regs, __u32 signal, __u64 blocked)
{
	if (runs_handler(t->taken_signal, blocked))
		return;
	note_return(t, register_value(regs, RSP));
	t->taken_signal = 0;
	t->unseen_signal = signal;
	take_registers(t, regs, NOWHERE);
}

/* last_return is where the thread that ends would have returned to. */
static __always_inline __u64 last_return(const struct thread *t, __u64 sp)
{
	__u64 ra = 0;

	if (!read_user(&ra, 8, sp))
		return return_to(ra);
	return sp == t->killed_at && t->killed_hits == t->batch.hits ? t->killed_returns : NOWHERE;
}

/* end_thread hands over what is left of a thread, and where it ends. */
static __always_inline int end_thread(struct thread *t, struct registers *regs, const struct ending *e)
{
	int by_itself = e->call == SYSCALL_EXIT || e->call == SYSCALL_EXIT_GROUP, handler = runs_handler(t->taken_signal, e->blocked);
	__u64 from;

	if (!e->known)
		return send_rest(t, 0, 0);
	if (e->rip != NOWHERE) {
		take_registers(t, regs, e->rip);
		return send_rest(t, WORD_END(FROM_INSIDE, e->rip) | (e->rip == t->faulted ? WORD_FAULTED : 0), 0);
	}
	if (t->killed_hits == t->batch.hits && runs_handler(t->unseen_signal, e->blocked))
		return send_rest(t, t->killed_returns != NOWHERE ? WORD_END(FROM_CALLED, t->killed_returns) : WORD_END(FROM_KILLED, 0), 0);
	from = by_itself || handler ? NOWHERE : last_return(t, register_value(regs, RSP));
	if (from != NOWHERE) {
		take_registers(t, regs, NOWHERE);
		return send_rest(t, WORD_END(FROM_CALLED, from), 0);
	}
	return send_rest(t, WORD_END(by_itself ? FROM_OUTSIDE : FROM_KILLED, 0), handler);
}

/* handler_word tells what a signal handler has interrupted. */
static __always_inline __u64 handler_word(const struct thread *t)
{
	__u64 rip = place(t->interrupted[FRAME_RIP]), from;

	if (rip != NOWHERE)
		return WORD_FROM(FROM_HANDLER, rip);
	from = called_from(t->interrupted[FRAME_RSP]);
	return from != NOWHERE ? WORD_FROM(FROM_CALLED, from) : WORD_FROM(FROM_HANDLER_OUTSIDE, 0);
}

/* from_word tells where a return address leads: into an image, elsewhere, or out of a signal handler, to what it interrupted. */
static __always_inline __u64 from_word(struct thread *t, __u64 ra, __u64 cfa)
{
	if (ra && (ra == t->restorer || is_restorer(ra))) {
		t->restorer = ra;
		read_frame(t, cfa);
		return handler_word(t);
	}
	ra = place(ra);
	return ra != NOWHERE ? WORD_FROM(FROM_INSIDE, ra) : WORD_FROM(FROM_OUTSIDE, 0);
}

static __always_inline __u64 mix(__u64 hash, __u64 v)
{
	hash = (hash ^ v) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* read_return reads the return address of an activation, and with it what follows on the stack: those of its callers may lie there. */
static __always_inline long read_return(struct thread *t, __u64 *ra, __u64 cfa)
{
	__u64 at = cfa - 8, offset = at - t->near_at;
	long failed = 0;

	if (offset >= t->near_size || offset & 7) {
		offset = 0;
		t->near_at = at;
		t->near_size = sizeof(t->near);
		if (read_user(t->near, sizeof(t->near), at)) { /* the stack ends before, or a page of it is not in memory */
			t->near_size = sizeof(t->near[0]);
			failed = read_user(t->near, sizeof(t->near[0]), at);
		}
	}
	offset >>= 3;
	bound_index(offset, NEAR);
	*ra = t->near[offset];
	return failed;
}

/* find_chain collects the return address of the activation and those of the callers that may have made no word yet. */
static __always_inline __u64 find_chain(struct thread *t, __u64 cfa)
{
	__u64 hash = 0, n = 0, ra = 0, known = 0;

	t->near_size = 0;
	for (int i = 0; i < CHAIN_MAX; i++) {
		ra = 0;
		if (read_return(t, &ra, cfa)) {
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
		if (!call || call & CALL_SPOKEN)
			break;
		cfa += call >> CALL_DEPTH_SHIFT;
		if (i == CHAIN_MAX - 1)
			count(METRIC_LONG_CHAIN);
	}
	t->chain_last = ra;
	if (ra && ra == t->restorer) { /* perhaps the same handler on the same stack, but it interrupted something else */
		read_frame(t, cfa);
		for (int i = 0; i < FRAME_REGISTERS; i++)
			hash = mix(hash, t->interrupted[i]);
		hash = mix(hash, handler_word(t)); /* with the same registers in another call */
	}
	t->chain_len = n;
	t->chain_known = known;
	t->chain_cfa = cfa;
	return hash;
}

static __always_inline void put_chain(struct thread *t, __u64 last)
{
	for (__u64 i = 0; i < CHAIN_MAX; i++) {
		if (i >= t->chain_len)
			break;
		__u64 ra = t->chain[i];
		if (i + 1 == t->chain_len && !t->chain_known)
			put(t, last);
		else
			put(t, WORD_FROM(FROM_INSIDE, place(ra)));
	}
}

struct resync {
	struct thread *t;
	__u64 cfa;
};

/* resync_step sends one caller of a thread that is seen for the first time. */
static long resync_step(__u32 i, struct resync *r)
{
	__u64 ra = 0, at, call, word;

	if (r->t->resync)
		return 1; /* lost in the middle */
	if (i == RESYNC_MAX - 1) {
		put(r->t, WORD_FROM(FROM_RESYNC | FROM_TRUNCATED, 0));
		return 1;
	}
	if (read_user(&ra, 8, r->cfa - 8)) {
		put(r->t, WORD_FROM(FROM_RESYNC | FROM_UNREADABLE, 0));
		return 1;
	}
	at = place(ra);
	call = call_at(at);
	word = call ? WORD_FROM(FROM_INSIDE, at) : from_word(r->t, ra, r->cfa);
	put(r->t, word | (__u64)FROM_RESYNC << 48);
	if (!call)
		return 1;
	r->cfa += call >> CALL_DEPTH_SHIFT;
	return 0;
}

__noinline int announce(struct thread *t, __u32 routine, __u64 cfa)
{
	__u64 last = 0;

	if (!t)
		return 0;
	if (!t->resync) {
		__u64 hash = find_chain(t, cfa);
		if (t->cfa == cfa && t->hash == hash && t->routine == routine)
			return 0;
		if (!t->chain_known)
			last = from_word(t, t->chain_last, t->chain_cfa);
		put_repeats(t);
		if (WORD_PLACE(last) == FROM_HANDLER)
			t->taken_signal = 0; /* its own words tell of it */
		if (WORD_PLACE(last) == FROM_HANDLER || WORD_PLACE(last) == FROM_CALLED) {
			make_room(t, FRAME_RIP);
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
	t->routine = routine;
	put_chain(t, last);
	return 0;
}

static __noinline __u64 case_value(struct registers *regs, const struct site *s)
{
	__u64 value = 0;
	__u32 size;

	if (!s)
		return 0;
	size = s->case_size;
	if (size < 1 || size > 8) /* for the verifier: it is 1, 2, 4 or 8 */
		size = 8;
	if (s->flags & SITE_CASE_MEMORY) {
		__u64 address = (__s64)s->case_disp;
		if (s->flags & SITE_CASE_RIP)
			address += bias_of(s);
		if (s->case_reg < NO_REG)
			address += register_value(regs, s->case_reg);
		if (s->case_index < NO_REG)
			address += register_value(regs, s->case_index) * s->case_scale;
		if (read_user(&value, size, address))
			return CASE_UNREADABLE;
	} else {
		value = register_value(regs, s->case_reg);
		if (s->case_index < NO_REG)
			value -= register_value(regs, s->case_index);
	}
	value &= ~0ULL >> (64 - 8 * size);
	if (s->flags & SITE_CASE_TARGET)
		value -= bias_of(s);
	return value & ((1ULL << 60) - 1);
}

/* lose counts a hit that no word says. */
static __always_inline void lose(struct thread *t)
{
	t->batch.hits++;
	t->batch.lost++;
	t->sent++;
	lost(&t->batch, 1);
}

/* forgo gives up a hit of which something could not be read: its activation, or which way it goes. What came before it is sent, so
 * that the loss is where it belongs, and nothing is remembered. */
__noinline int forgo(struct thread *t)
{
	if (!t)
		return 0;
	count(METRIC_FORGONE);
	put_repeats(t);
	hand_over(t);
	forget(t);
	lose(t);
	return 0;
}

/* is_last: is the activation certain to be that of the last hit, and its callers known? To find that out by its return address is the dearest part of a hit. */
static __always_inline int is_last(struct thread *t, const struct site *s, __u64 cfa)
{
	return t->stays && t->cfa == cfa && t->routine == s->routine;
}

/* say puts what a hit says into the batch. It returns 0 if a loss came in between: what was said before it is gone. */
static __always_inline int say(struct registers *regs, struct thread *t, const struct site *s, __u64 cfa, __u64 word, __u64 out)
{
	__u64 which = 0;

	if (t->resync || (s->flags & SITE_FIRST && !is_last(t, s, cfa)))
		announce(t, s->routine, cfa);
	if (t->resync)
		return 0;
	t->stays = s->stays >> out & 1;
	if (s->flags & (SITE_CASE | SITE_VALUE) && (s->flags & SITE_VALUE || out == !!(s->flags & SITE_CASE_TAKEN))) {
		__u64 value = case_value(regs, s);

		if (value == CASE_UNREADABLE) {
			forgo(t);
			return 1;
		}
		which = WORD_CASE(value);
	}
	if (word == t->last && which == t->last_case) {
		t->repeats++;
		t->batch.hits++;
		return 1;
	}
	put_repeats(t);
	make_room(t, which ? 2 : 1);
	if (t->resync)
		return 0;
	if (which)
		put(t, which);
	t->last = word;
	t->last_case = which;
	t->batch.hits++;
	put(t, word);
	return 1;
}

/* report makes the word of a hit, as package wire knows it: which activation, which site, which way. */
static __always_inline void report(struct registers *regs, struct thread *t, const struct site *s, __u32 id)
{
	/* a field of the context has to be loaded before it is chosen */
	__u64 sp = *(volatile __u64 *)&regs->rsp, bp = *(volatile __u64 *)&regs->rbp, flags = *(volatile __u64 *)&regs->flags;
	__u64 cfa = (s->base == 5 ? bp : sp) + (__s64)s->offset;
	__u64 out = s->condition < CONDITION_NONE ? condition(s->condition, flags) : 0;
	__u64 word;

	if (s->flags & SITE_SLOT && read_user(&cfa, 8, cfa)) {
		forgo(t);
		return;
	}
	word = WORD_WITNESS(id, out, cfa);
	if (cfa >> 47)
		count(METRIC_HIGH_ADDRESS);
	if (cfa != t->cfa)
		t->cfa = 0; /* the remembered activation may be over: this one is further out, or on another stack */
	for (int i = 0; i < 2; i++)
		if (say(regs, t, s, cfa, word, out))
			return;
	lose(t);
}

#endif
