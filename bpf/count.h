/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What happens at a hit of a counting plan (package loader/counting). Of a thread the kernel keeps
 * the state that its path is in: what the hits of its activation say of it. A hit moves on to the
 * next state, and counts that.
 */
#ifndef WPPTRACE_COUNT_H
#define WPPTRACE_COUNT_H

#include <linux/types.h>
#include "arch_x86.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

/* A site is its attach cookie: from the low bits on the symbol, by which it finds a step in a
 * state's row, with the outcome added; what is added to a register to get the CFA; and the rest. A
 * hit looks up nothing of it. */
enum count_cookie {
	COUNT_OFFSET_SHIFT = 32,
	/* Of the offset, which is signed. */
	COUNT_OFFSET_BITS = 23,
	/* Condition code of a conditional jump. */
	COUNT_CONDITION_SHIFT = 55,
	/* It is one. */
	COUNT_CONDITIONAL = 59,
	/* Some row may have a step for it. */
	COUNT_FOLLOWS = 60,
	/* The register is the frame pointer, not the stack pointer. */
	COUNT_BY_FP = 61,
	/* The CFA is in memory, where that leads. */
	COUNT_IN_SLOT = 62,
	/* It may be the first hit of a path whose activation has just begun or gone on. */
	COUNT_FIRST = 63
};
#define COUNT_SYMBOL(cookie) ((__u32)(cookie))
#define COUNT_OFFSET(cookie)                                                                       \
	((__s64)((cookie) << (64 - COUNT_OFFSET_SHIFT - COUNT_OFFSET_BITS)) >> (64 - COUNT_OFFSET_BITS))
#define COUNT_CONDITION(cookie) ((cookie) >> COUNT_CONDITION_SHIFT & 15)
#define COUNT_HAS(cookie, bit) ((cookie) >> (bit) & 1)

/* Rows of steps. A row is where it begins among the steps, modulo 2^32: a hit's step is as far
 * behind that as its symbol and outcome say. Rows lie within each other, so that a step says whose
 * it is. */
enum count_row {
	/* Its steps are those of hits that no other row has steps for. */
	ROW_DEFAULT,
	/* No step is of this row. */
	ROW_NONE = 0xffffffff
};
/* Nobody counts this. */
#define KEY_NONE (~0ULL)
/* What a hit leads to. */
struct count_step {
	/* The row that it belongs to. */
	__u32 from;
	/* The row that comes next. */
	__u32 to;
	/* The counter that gets one more. */
	__u64 key;
};

/* Paths of a thread that signals have interrupted: a power of two. */
#define COUNT_SAVED 8
struct count_path {
	__u64 cfa;
	__u64 row;
};
/* What is remembered of a thread. */
struct count_thread {
	/* The activation of the last hit; 0: it does not matter any more. */
	__u64 cfa;
	/* What that hit has led to. */
	__u32 row;
	/* Whose this is; 0: nobody's. */
	__u32 tid;
	/* Of saved, which comes next, and how many there may be. */
	__u32 next;
	__u32 waiting;
	/* Hits that have begun and that have ended: odd in the midst of one. */
	__u64 hits;
	struct count_path saved[COUNT_SAVED];
} __attribute__((aligned(64)));
/* In the place of a CFA: whatever activation the next hit is of, that is it. */
#define CFA_ANY 1

enum count_metric {
	/* Hits of paths whose beginning was not seen: they began before the counting, or so many
	 * signals have interrupted them that they were forgotten. */
	COUNT_UNKNOWN,
	/* Paths that there was no counter for. */
	COUNT_FULL,
	/* Hits of threads that there was no room for. */
	COUNT_NO_THREAD,
	/* Hits whose activation could not be read. */
	COUNT_UNREADABLE,
	/* Signals that came amid the image's code, and threads that have ended there: a path that is
	 * never gone on with may count. */
	COUNT_AMID,
	/* The hits of threads that have ended, each twice: no failure. */
	COUNT_ENDED,
	COUNT_METRICS
};

/* note counts a failure. */
static void note(enum count_metric m);
/* count_key adds one to the counter of a key. */
static void count_key(__u64 key);
/* step_at returns the step there, or 0. */
static const struct count_step *step_at(__u64 index);
/* read_user reads 8 bytes of the process's memory. It returns 0, or an error. */
static long read_user(__u64 *to, __u64 from);

/* The stack that a thread has for handlers of signals, sigaltstack(2), if it has one. */
struct signal_stack {
	__u64 begin, size;
};

static __always_inline int is_on(const struct signal_stack *s, __u64 sp)
{
	return sp - s->begin - 1 < s->size;
}

/* is_over says whether an activation is, when a signal comes at this stack pointer. */
static __always_inline int is_over(__u64 cfa, __u64 sp, const struct signal_stack *s)
{
	int on = is_on(s, cfa);

	return on == is_on(s, sp) ? cfa <= sp : on;
}

/* save keeps what a signal interrupts, and forgets what is over: handlers, behind which the next
 * one comes before the thread has gone on. */
static __always_inline void save(struct count_thread *t, __u64 sp, const struct signal_stack *s)
{
	__u32 n;

	for (int i = 0; i < COUNT_SAVED; i++) {
		n = (t->next - 1) & (COUNT_SAVED - 1);
		if (!t->waiting || !is_over(t->saved[n].cfa, sp, s))
			break;
		t->next = n;
		t->waiting--;
	}
	if (t->cfa && !is_over(t->cfa, sp, s)) {
		n = t->next & (COUNT_SAVED - 1);
		t->saved[n] = (struct count_path){t->cfa, t->row};
		t->next = n + 1;
		if (t->waiting < COUNT_SAVED)
			t->waiting++;
	}
	t->cfa = 0;
}

/* restore finds the path of an activation among those that signals have interrupted: the latest,
 * and those that have interrupted that one are over. It returns 0 if there is none. */
static __noinline int restore(struct count_thread *t, __u64 cfa)
{
	if (!t)
		return 0;
	if (t->cfa == CFA_ANY) {
		t->cfa = cfa;
		return 1;
	}
	for (__u32 i = 1; i <= COUNT_SAVED; i++) {
		__u32 n = (t->next - i) & (COUNT_SAVED - 1);

		if (i > t->waiting)
			break;
		if (t->saved[n].cfa != cfa)
			continue;
		t->cfa = cfa;
		t->row = t->saved[n].row;
		t->next = n;
		t->waiting -= i;
		return 1;
	}
	return 0;
}

/* step_of returns the step of a hit from a row, or 0. */
static __always_inline const struct count_step *step_of(__u32 row, __u32 hit)
{
	const struct count_step *s = step_at(row + hit);

	return s && s->from == row ? s : 0;
}

/* count_hit counts a hit of the site that has the cookie. */
static __always_inline void count_hit(struct registers *regs, struct count_thread *t, __u64 cookie)
{
	/* A field of the context has to be loaded before it is chosen. */
	__u64 sp = *(volatile __u64 *)&regs->REG_SP, fp = *(volatile __u64 *)&regs->REG_FP;
	__u64 flags = *(volatile __u64 *)&regs->REG_FLAGS;
	__u64 cfa = (COUNT_HAS(cookie, COUNT_BY_FP) ? fp : sp) + COUNT_OFFSET(cookie);
	__u32 hit = COUNT_SYMBOL(cookie) +
		(condition(COUNT_CONDITION(cookie), flags) & COUNT_HAS(cookie, COUNT_CONDITIONAL));
	const struct count_step *step = 0;

	if (COUNT_HAS(cookie, COUNT_IN_SLOT) && read_user(&cfa, cfa)) {
		note(COUNT_UNREADABLE);
		t->cfa = 0;
		return;
	}
	if (COUNT_HAS(cookie, COUNT_FOLLOWS) &&
		(t->cfa == cfa || ((t->waiting || t->cfa == CFA_ANY) && restore(t, cfa))))
		step = step_of(t->row, hit);
	if (!step && COUNT_HAS(cookie, COUNT_FIRST))
		step = step_of(ROW_DEFAULT, hit);
	if (!step) {
		note(COUNT_UNKNOWN);
		t->cfa = 0;
		return;
	}
	t->cfa = cfa;
	t->row = step->to;
	count_key(step->key);
}

#endif
