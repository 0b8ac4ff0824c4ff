/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What happens at a hit of a counting plan (package loader/counting). Of a thread the kernel keeps
 * the state that its path is in: which sites the path has hit, as a number. A hit moves on to the
 * next state, and counts that. Who includes this defines what is declared first; for the kernel that
 * is count.bpf.c, for a simulated process usermode/count.c.
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
	COUNT_OFFSET_BITS = 24,
	/* Condition code of a conditional jump. */
	COUNT_CONDITION_SHIFT = 56,
	/* It is one. */
	COUNT_CONDITIONAL = 60,
	/* The register is the frame pointer, not the stack pointer. */
	COUNT_BY_FP = 61,
	/* The CFA is in memory, where that leads. */
	COUNT_IN_SLOT = 62,
	/* The first of any path that hits it: whatever was before is over. */
	COUNT_FIRST = 63
};
#define COUNT_SYMBOL(cookie) ((__u32)(cookie))
#define COUNT_OFFSET(cookie)                                                                       \
	((__s64)((cookie) << (64 - COUNT_OFFSET_SHIFT - COUNT_OFFSET_BITS)) >> (64 - COUNT_OFFSET_BITS))
#define COUNT_CONDITION(cookie) ((cookie) >> COUNT_CONDITION_SHIFT & 15)
#define COUNT_HAS(cookie, bit) ((cookie) >> (bit) & 1)

/* A state has a row of steps, some of which belong to others' rows, and a key, by which it is
 * counted. Where rows are shared the key tells the states apart. */
enum count_row {
	/* Nothing of this path counts any more. */
	ROW_DEAD,
	/* No step leads on from here. */
	ROW_LAST,
	/* What a first site leads on from. */
	ROW_FIRST
};
/* Nobody counts this. */
#define KEY_NONE (~0ULL)
/* Where a site leads to from the state whose row this is at. */
struct count_step {
	/* The row that it belongs to; COUNT_NO_ROW: none. */
	__u32 from;
	/* The row of the next state. */
	__u32 to;
	/* What makes its key of the key before. */
	__u64 add;
};
#define COUNT_NO_ROW (~0U)

/* What a thread's path is in. */
struct count_state {
	/* Of the path's activation; 0: none. */
	__u64 cfa;
	__u64 key;
	__u32 row;
	/* Whose it is; 0: nobody's. */
	__u32 tid;
};
/* Paths of a thread that signals have interrupted. */
#define COUNT_SAVED 8
struct count_saved {
	struct count_state paths[COUNT_SAVED];
	/* Which of them is next. */
	__u64 next;
};

enum count_metric {
	/* Hits of paths whose beginning was not seen: they began before the counting, or so many signals
	 * have interrupted them that they were forgotten. */
	COUNT_UNKNOWN,
	/* Paths that there was no counter for. */
	COUNT_FULL,
	/* Hits of threads that there was no room for. */
	COUNT_NO_THREAD,
	/* Hits whose activation could not be read. */
	COUNT_UNREADABLE,
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

/* saved_by returns what signals have interrupted of a thread, or 0. */
static struct count_saved *saved_by(struct count_state *t);

/* save keeps what a signal has interrupted. */
static __always_inline void save(struct count_state *t)
{
	struct count_saved *s;

	if (!t->cfa || !(s = saved_by(t)))
		return;
	s->paths[s->next++ & (COUNT_SAVED - 1)] = *t;
	t->cfa = 0;
}

/* restore finds the path of an activation among those that signals have interrupted: the latest,
 * and those that have interrupted that one are over. It returns 0 if there is none. */
static __noinline int restore(struct count_state *t, __u64 cfa)
{
	struct count_saved *s;

	if (!t || !(s = saved_by(t)))
		return 0;
	for (__u32 i = 1; i <= COUNT_SAVED; i++) {
		struct count_state *p = &s->paths[(s->next - i) & (COUNT_SAVED - 1)];

		if (p->cfa == cfa && p->tid == t->tid) {
			*t = *p;
			p->cfa = 0;
			s->next -= i;
			return 1;
		}
	}
	return 0;
}

/* count_hit counts a hit of the site that has the cookie. */
static __always_inline void count_hit(struct registers *regs, struct count_state *t, __u64 cookie)
{
	/* A field of the context has to be loaded before it is chosen. */
	__u64 sp = *(volatile __u64 *)&regs->REG_SP, fp = *(volatile __u64 *)&regs->REG_FP;
	__u64 flags = *(volatile __u64 *)&regs->REG_FLAGS;
	__u64 cfa = (COUNT_HAS(cookie, COUNT_BY_FP) ? fp : sp) + COUNT_OFFSET(cookie);
	__u64 out = condition(COUNT_CONDITION(cookie), flags) & COUNT_HAS(cookie, COUNT_CONDITIONAL);
	__u64 row = ROW_FIRST, key = 0;
	const struct count_step *step;

	if (COUNT_HAS(cookie, COUNT_IN_SLOT) && read_user(&cfa, cfa)) {
		note(COUNT_UNREADABLE);
		t->cfa = 0;
		return;
	}
	if (!COUNT_HAS(cookie, COUNT_FIRST)) {
		if (t->cfa != cfa && !restore(t, cfa)) {
			note(COUNT_UNKNOWN);
			return;
		}
		row = t->row;
		key = t->key;
		if (row == ROW_DEAD)
			return;
	}
	step = step_at(row + COUNT_SYMBOL(cookie) + out);
	if (!step || step->from != row) {
		note(COUNT_UNKNOWN);
		t->cfa = 0;
		return;
	}
	key += step->add;
	t->cfa = cfa;
	t->row = step->to;
	t->key = key;
	count_key(key);
}

#endif
