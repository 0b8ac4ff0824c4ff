/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is remembered of a thread, and how its words are collected and handed over. Included by hit.h. */
#ifndef WPPTRACE_THREAD_H
#define WPPTRACE_THREAD_H

#include "types.h"

#define NEAR 8 /* words of the stack that are read at once */
_Static_assert((NEAR & (NEAR - 1)) == 0, "an index is bounded by a mask");

/* What is remembered of a thread. */
struct thread {
	__u64 cfa, hash;  /* the activation whose chain of callers was sent last; cfa 0: none */
	__u32 routine;
	__u32 resync;     /* the next word begins with the whole chain of callers */
	__u64 last;       /* the last word, 0: none, and its case */
	__u64 last_case;
	__u64 repeats;    /* how many more times it came */
	__u64 stays;      /* the activation of the last hit has another before it calls or ends */
	__u64 sent;       /* hits in batches that were handed over or lost */
	__u64 sending;    /* what is left of it is being handed over */
	__u64 restorer;   /* where signal handlers return to, once seen */
	__u64 near_at, near_size; /* where the stack has what near begins with, while callers are looked for, and how many bytes */
	__u64 near[NEAR];
	__u64 chain_cfa;  /* of the outermost activation of the chain */
	__u64 chain_len;
	__u64 chain_last;  /* its last return address */
	__u64 chain_known; /* which is one of the calls map */
	__u64 chain[CHAIN_MAX];
	__u64 interrupted[FRAME_REGISTERS]; /* what the signal frame has that the chain ends with */
	__u64 taken[FRAME_REGISTERS]; /* what registers held where the last signal's handler came that has interrupted an image, or at the thread's end */
	__u64 taken_signal; /* which that is; 0: none */
	__u64 killed_returns; /* where code in no image returned to in one, or NOWHERE, when a signal came that may end it; the stack pointer then, 0: none; and the hits */
	__u64 killed_at;
	__u64 killed_hits;
	__u64 faulted;    /* the instruction of an image that has faulted without a handler for it, or NOWHERE */
	__u64 unseen_signal; /* which that is, if it has a handler; 0: it has none */
	__u64 untimed;    /* hits until one is timed; not set by begin */
	struct batch batch;
};

/* forget sees to it that the next word says where it is all by itself. */
static __always_inline void forget(struct thread *t)
{
	t->cfa = 0;
	t->last = 0;
	t->taken_signal = 0;
	t->resync = 1;
}

/* begin is how a thread starts, in memory that may have been another's. sending is not touched: that one's rest may be on its way yet. */
static __always_inline void begin(struct thread *t, __u32 tid, __u64 started, __u32 resync)
{
	t->batch.tid = tid;
	t->batch.started = started;
	t->batch.count = t->batch.sequence = t->batch.hits = t->batch.lost = 0;
	t->sent = t->repeats = t->stays = t->restorer = t->chain_len = t->killed_at = t->unseen_signal = 0;
	t->faulted = NOWHERE;
	forget(t);
	t->resync = resync;
}

/* hand_over_rest sends what is left of a thread, which nobody can stop until there is room in the ring buffer: where there is none it is kept elsewhere, and what comes
 * next as well, until that has been read: it may be the same thread's. */
static __always_inline long hand_over_rest(struct thread *t, __u64 n)
{
	if (!keeps() && !output(&t->batch, n))
		return 0;
	return keep(&t->batch, n);
}

/* hand_over sends the batch. After a loss nothing is remembered. */
__noinline int hand_over(struct thread *t)
{
	__u64 n;

	if (!t || !(n = t->batch.count))
		return 0;
	if (t->sending ? hand_over_rest(t, n) : output(&t->batch, n)) {
		count(METRIC_LOST_BATCHES);
		t->batch.lost += t->batch.hits - t->sent;
		lost(&t->batch, t->batch.hits - t->sent);
		forget(t);
	}
	t->sent = t->batch.hits;
	t->batch.sequence++;
	t->batch.count = 0;
	return 0;
}

static __always_inline void put(struct thread *t, __u64 word)
{
	__u64 n = t->batch.count;

	bound_index(n, BATCH_WORDS);
	t->batch.words[n] = word;
	t->batch.count = n + 1;
	if (n + 1 >= BATCH_WORDS)
		hand_over(t);
}

/* make_room sees to it that what one hit says, n words, is in one batch: a loss must not tear it. */
static __always_inline void make_room(struct thread *t, __u64 n)
{
	if (t->batch.count + n > BATCH_WORDS)
		hand_over(t);
}

static __always_inline void put_repeats(struct thread *t)
{
	if (t->repeats) {
		__u64 n = t->repeats;
		t->repeats = 0;
		put(t, WORD_REPEAT(n));
	}
}

#endif
