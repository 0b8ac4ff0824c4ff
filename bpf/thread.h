/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What is remembered of a thread, and how its events are collected and handed over. */
#ifndef WPPTRACE_THREAD_H
#define WPPTRACE_THREAD_H

#include "env.h"

/* Words of the stack that are read at once. */
#define NEAR 8
_Static_assert((NEAR & (NEAR - 1)) == 0, "an index is bounded by a mask");

/* What is remembered of a thread: first what nearly each hit needs. */
struct thread {
	/* The activation whose chain of callers was sent last, and a hash of that; cfa 0: none. */
	__u64 cfa, hash;
	__u32 routine;
	/* The next hit is sent with the whole chain of callers. */
	__u32 resync;

	/* The last event of a hit (0: none), what was captured there, and how many more times both
	 * came. */
	__u64 last;
	__u64 last_captured;
	__u64 repeats;
	/* The activation of the last hit has another before it calls or ends. */
	__u64 stays;

	/* The activation that the one of the last hit calls before it has another: its CFA, 0 where it
	 * is not known, and its return address. */
	__u64 next_cfa, next_return;

	/* Hits in batches that were handed over or lost. */
	__u64 sent;
	/* Records that were handed over or lost. */
	__u64 records;
	/* Handlers of signals that came. */
	__u64 handlers;
	/* Hits until one is timed; not set by init_thread. */
	__u64 untimed;
	struct batch batch;

	/* The CFA of the outermost activation of the chain, the chain's length, its last return
	 * address, and whether that is one of the calls map. */
	__u64 chain_cfa;
	__u64 chain_len;
	__u64 chain_last;
	__u64 chain_known;
	__u64 chain[CHAIN_MAX];
	/* While callers are looked for: words of the stack, where they lie, and how many bytes. */
	__u64 near_at, near_size;
	__u64 near[NEAR];
	/* What the signal frame has that the chain ends with. */
	__u64 interrupted[FRAME_REGISTERS];

	/* What registers held where the last signal's handler came that has interrupted an image, or
	 * at the thread's end. */
	__u64 taken[FRAME_REGISTERS];
	/* That signal; 0: none. */
	__u64 taken_signal;

	/* When a signal came that may end the thread: the return address into a traced image of the
	 * external code that ran, or NOWHERE. */
	__u64 killed_returns;
	/* The stack pointer then; 0: none came. */
	__u64 killed_at;
	/* batch.hits then: if that is unchanged at the end, these are up to date. */
	__u64 killed_hits;

	/* The instruction of an image that has faulted without a handler for it, or NOWHERE. */
	__u64 faulted;
	/* The signal whose handler has begun in external code; 0: none. */
	__u64 unseen_signal;
	/* What is left of the thread is being handed over. */
	__u64 sending;
	/* Where signal handlers return to, once seen. */
	__u64 restorer;
};

/* reset_thread sees to it that the next hit says where it is all by itself. */
static __always_inline void reset_thread(struct thread *t)
{
	t->cfa = 0;
	t->last = 0;
	t->taken_signal = 0;
	t->resync = 1;
	t->next_cfa = 0;
}

/* init_thread is how a thread starts, in memory that may have been another's. sending is not
 * touched: that one's last batch may be on its way yet. */
static __always_inline void init_thread(struct thread *t, __u32 tid, __u64 started, __u32 resync)
{
	t->batch.tid = tid;
	t->batch.started = started;
	t->batch.count = t->batch.sequence = t->batch.hits = t->batch.lost = 0;
	t->sent = t->records = t->handlers = t->repeats = t->stays = t->restorer = t->chain_len =
		t->killed_at = t->unseen_signal = 0;
	t->faulted = NOWHERE;
	reset_thread(t);
	t->resync = resync;
}

/* send_record sends a record of the thread. What is left of a thread nobody can stop until there is
 * room in the ring buffer: where there is none it goes to the overflow ring, and so does what comes
 * next until that has been read: it may be the same thread's. */
static __always_inline long send_record(struct thread *t, void *record, __u64 n, __u64 most)
{
	t->records++;
	if (!t->sending)
		return output(record, n, most);
	if (!overflows() && !output(record, n, most))
		return 0;
	return output_overflow(record, n, most);
}

/* hand_over_states sends what the thread's hits have seen, if values are taken. */
static void hand_over_states(struct thread *t);

/* hand_over sends the batch, behind the states of its hits. After a loss nothing is remembered. */
__noinline int hand_over(struct thread *t)
{
	__u64 n;

	if (!t)
		return 0;
	hand_over_states(t);
	n = t->batch.count;
	if (!n)
		return 0;
	if (send_record(t, &t->batch, n, BATCH_EVENTS)) {
		count(METRIC_LOST_BATCHES);
		t->batch.lost += t->batch.hits - t->sent;
		note_loss(&t->batch, t->batch.hits - t->sent);
		reset_thread(t);
	}
	t->sent = t->batch.hits;
	t->batch.sequence++;
	t->batch.count = 0;
	return 0;
}

static __always_inline void put(struct thread *t, __u64 event)
{
	__u64 n = t->batch.count;

	bound_index(n, BATCH_EVENTS);
	t->batch.events[n] = event;
	t->batch.count = n + 1;
	if (n + 1 >= BATCH_EVENTS)
		hand_over(t);
}

/* make_room sees to it that the n events of one hit are in one batch: a loss must not tear them. */
static __always_inline void make_room(struct thread *t, __u64 n)
{
	if (t->batch.count + n > BATCH_EVENTS)
		hand_over(t);
}

static __always_inline void put_repeats(struct thread *t)
{
	if (t->repeats) {
		__u64 n = t->repeats;
		t->repeats = 0;
		put(t, EVENT_REPEAT(n));
	}
}

#endif
