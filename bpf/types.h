/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The structures and numbers that the BPF program, its user-space build and the Go bindings share.
 */
#ifndef WPPTRACE_TYPES_H
#define WPPTRACE_TYPES_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#include "arch_x86.h"

/* An event has 18 bits for the site. */
#define MAX_SITES (1 << 18)
#define BATCH_EVENTS 64
/* Callers that may have had no event yet: the plan keeps them few. */
#define CHAIN_MAX 56
/* Callers sent when a thread is seen for the first time, or after a loss. */
#define RESYNC_MAX 16384

/* An entry of the sites array; the attach cookie is its index. */
struct site {
	/* CFA = base register + offset, or what lies there: SITE_SLOT. */
	__s32 offset;
	__u32 routine;
	/* The base register's hardware number. */
	__u8 base;
	/* Condition code of a conditional jump, or CONDITION_NONE. */
	__u8 condition;
	/* SITE_*. */
	__u8 flags;
	/* The register with the captured value, or the base of its address; NO_REG: none. */
	__u8 capture_reg;
	/* The index of its address or, where a register is captured, what is subtracted; NO_REG: none.
	 */
	__u8 capture_index;
	__u8 capture_scale;
	/* Bytes. */
	__u8 capture_size;
	/* The image that it is in: an index of libraries, plus one; 0: the executable. */
	__u8 library;
	__s32 capture_disp;
	/* 1 << outcome: after it the activation neither calls nor ends before its next event. */
	__u32 stays;
	/* By outcome: the one call that can come before its next event. A CALLING; 0: none is known. */
	__u64 next[2];
	/* The one call that enters the routine, a CALLING; 0: there may be several. */
	__u64 caller;
};
/* A CALLING is a call by its link-time return address, in the low bits. Above them it has the depth
 * of a next call, in units of 8 bytes; of an only one, whether an event of the caller comes before
 * it. */
enum calling { CALLING_SHIFT = 47 };
#define CALLING_RETURN(c) ((c) & ((1ULL << CALLING_SHIFT) - 1))
#define CALLING_DEPTH(c) ((c) >> CALLING_SHIFT << 3)
#define CALLING_AFTER_EVENT(c) ((c) >> CALLING_SHIFT)
enum site_none { CONDITION_NONE = 16, NO_REG = 16 };
enum site_flag {
	/* The event may be the first of its activation. */
	SITE_FIRST = 1,
	/* A switch's index is captured, when the outcome is 0. */
	SITE_CAPTURE = 2,
	/* No: when it is 1. */
	SITE_CAPTURE_TAKEN = 4,
	/* The index is in memory. */
	SITE_CAPTURE_MEMORY = 8,
	/* capture_disp is relative to the image. */
	SITE_CAPTURE_RIP = 16,
	/* The captured value is an absolute address: sent as at link time. */
	SITE_CAPTURE_TARGET = 32,
	/* The routine keeps its CFA in memory, at base register + offset. */
	SITE_SLOT = 64,
	/* A value is captured as a switch's would be, whatever the outcome. */
	SITE_VALUE = 128
};

/* A power of two: an index is bounded by a mask. */
enum library_table { LIBRARIES_MAX = 32 };

/* A traced image besides the executable. */
struct library {
	/* Load address minus link-time address. */
	__u64 bias;
	/* Bytes from the link-time address 0 on; 0: it is not mapped. */
	__u64 size;
	/* The link-time address where its code begins. */
	__u64 first;
	/* Added to a link-time address so that no two images have one in common. */
	__u64 offset;
};

/* An entry of the calls array, a table with open addressing: what is known of a call in a traced
 * routine, by its return address. */
struct call {
	/* Link-time, with the offset of its image; 0: the entry is empty. */
	__u64 address;
	/* CALL_KNOWN, CALL_REPORTED, and from CALL_DEPTH_SHIFT on CFA - stack pointer before the call
	 * instruction, bytes. */
	__u32 info;
	/* The distance to the return address of the one call that enters its routine; 0: there may be
	 * several. */
	__s32 caller;
};
enum call_table {
	/* A call is at most so many entries, less one, behind the first that it may be at. */
	CALL_PROBES = 16,
	/* 2^32 divided by the golden ratio, which spreads addresses (Knuth, volume 3, 6.4). */
	CALL_MULTIPLIER = 0x9e3779b1
};
static __always_inline __u32 call_slot(__u64 address, __u32 shift)
{
	return (__u32)address * CALL_MULTIPLIER >> shift;
}

/* CALL_REPORTED: its routine has had an event before it calls. */
enum call_bits { CALL_KNOWN = 1, CALL_REPORTED = 2, CALL_DEPTH_SHIFT = 2 };

/* What call_at says of a call, 0 where it knows none: its info and, in the high half, its caller.
 */
static __always_inline __u64 call_info(const struct call *c)
{
	return (__u64)c->caller << 32 | c->info;
}
#define CALL_DEPTH(call) ((__u32)(call) >> CALL_DEPTH_SHIFT)
#define CALL_CALLER(call) ((__u64)((__s64)(call) >> 32))

/* What goes through the ring buffer: count events of one thread. */
struct batch {
	__u32 tid;
	__u32 count;
	/* CLOCK_BOOTTIME when the thread began, ns: distinguishes it from a later one with its number.
	 */
	__u64 started;
	/* From 0 for each thread; lost batches count. */
	__u64 sequence;
	/* Hits of the thread so far, those of this batch included. */
	__u64 hits;
	/* Of them, lost so far. */
	__u64 lost;
	__u64 events[BATCH_EVENTS];
};
_Static_assert((BATCH_EVENTS & (BATCH_EVENTS - 1)) == 0, "an index is bounded by a mask");

/* Bytes of a record before its events, or its states. */
#define RECORD_HEADER (sizeof(struct batch) - sizeof(((struct batch *)0)->events))

/* In the count of a record: it holds states. */
#define STATES (1U << 31)
/* A power of two. */
#define STATE_WORDS 512

/* What hits have seen of a thread: count words of states, each of which is, as package wire has it,
 * a header of two words, the registers if it is whole, what its load program has read, and a mask
 * of the reads that failed, if any did. */
struct states {
	__u32 tid;
	/* STATES, too. */
	__u32 count;
	__u64 started;
	/* From 0 for each thread; lost records count. */
	__u64 sequence;
	/* States of the thread so far, those of this record included. */
	__u64 hits;
	/* Of them, lost so far. */
	__u64 lost;
	__u64 words[STATE_WORDS];
};
_Static_assert((STATE_WORDS & (STATE_WORDS - 1)) == 0, "an index is bounded by a mask");

/* Probes for values alone, which make no event, have cookies from here on. */
#define EXTRA_COOKIES (MAX_SITES >> 1)

/* An entry of the looks array: what is read at a hit. Those of sites have the sites' indices, those
 * of probes for values alone follow. Steps are given by their indices; 0: none. */
struct look {
	/* By outcome. */
	__u32 first[2];
	/* What runs before that at whole states, on what external code may have changed before the hit.
	 * Where a signal's handler has come since it does not: that may have changed it again. */
	__u32 behind;
	/* LOOK_*. */
	__u8 flags;
	/* As of a site. */
	__u8 condition;
	__u8 library;
	__u8 unused;
};
/* By outcome: traced code may be left before the next hit. */
enum look_flag { LOOK_LEAVES = 1, LOOK_LEAVES_TAKEN = 2 };

/* What a step of a load program does: x is its cell a, y its cell b, shifted left by scale, plus
 * imm. The arithmetic ones have the low size bytes of their result in the cell dst, zeroes above.
 * Package loader/loads has the same in Go. */
enum load_op {
	LOAD_END,
	LOAD_SUM,
	LOAD_SUBTRACT,
	LOAD_AND,
	LOAD_OR,
	LOAD_XOR,
	/* By the low 5 bits of y, 6 if size is 8. */
	LOAD_SHIFT_LEFT,
	LOAD_SHIFT_RIGHT,
	LOAD_SHIFT_RIGHT_SIGNED,
	LOAD_MULTIPLY,
	/* The low size bytes of x, with their sign above if sign is set. */
	LOAD_EXTEND,
	/* Reads size bytes at x + y into the place dst. */
	LOAD_FETCH,
	/* size bytes of the place a, from byte imm on, as by LOAD_EXTEND. */
	LOAD_PICK,
	/* Goes on at the next step unless the condition holds of x compared with y in size bytes; if
	 * sign is set, of x & y. */
	LOAD_BRANCH,
	/* The low size bytes of x + y are an index of the cases behind the one with the index jump,
	 * which is how many they are: goes on at that step, or at the next if there is none, and not
	 * jump steps further. */
	LOAD_SWITCH,
	/* Goes on behind the call that returns to x; if it is not known, traced code is left. */
	LOAD_RETURN,
	/* Traced code may be left. */
	LOAD_LEAVE,
	/* The low size bytes of cell b are at x + imm from here on, for LOAD_PICK alone. */
	LOAD_STORE
};

/* An entry of the load_steps array. */
struct load_step {
	/* enum load_op. */
	__u8 op;
	__u8 dst, a, b;
	__u8 scale;
	/* Bytes. */
	__u8 size;
	__u8 sign;
	/* A condition code, but none of parity. */
	__u8 condition;
	__s32 imm;
	/* It goes on at the next step, and so many further, modulo 2^32; step 0 is the end. */
	__u32 jump;
};

/* Cells: first registers by their hardware numbers. */
enum cell {
	CELL_BIAS = 16, /* of the image that the probe is in */
	CELL_FS_BASE = 17,
	NO_CELL = 127, /* holds 0 */
	CELLS
};
enum load_limit {
	/* Of a hit: instead of one more its programs end, and traced code may be left. */
	LOAD_STEPS = 256,
	/* The same, and as many are the places. */
	LOAD_FETCHES = 16,
	/* Of a fetch. */
	LOAD_BYTES = 64,
	/* Stores that are remembered: the last ones. */
	LOAD_STORES = 4
};

/* Memory of the process. */
struct area {
	__u64 address;
	/* Bytes. */
	__u64 size;
};

/* Areas of restartable sequences that are noted. */
enum sequence_table { SEQUENCES_MAX = 8 };

/* A thread, as distinct from a later one with its number. */
struct life {
	/* As in its batches. */
	__u64 started;
	__u64 tid;
};

/* What a thread has lost; hits counts all that it had up to its last loss. */
struct loss {
	__u64 hits, lost;
};

/* No process ends with that status. */
enum ending_flag { ENDED = 1 << 30 };

/* Processes that live at the same time. */
enum family_table { FAMILY_MAX = 8192 };
enum family_event { FAMILY_BORN, FAMILY_EXEC };
enum obstacle { OBSTACLE_NONE, OBSTACLE_DEBUGGER, OBSTACLE_JOB_CONTROL };

/* A process that has begun, or another program. It is stopped, unless there is an obstacle. */
struct news {
	__u32 process;
	/* enum family_event. */
	__u32 event;
	/* enum obstacle. */
	__u32 obstacle;
	/* That of its first thread, ended by 0. */
	char name[16];
};

/* Failures and the like, counted: index into the metrics array. */
enum metric {
	/* No task storage for a thread. */
	METRIC_NO_STORAGE,
	/* A cookie that names no site. */
	METRIC_NO_SITE,
	/* The ring buffer was full. */
	METRIC_LOST_BATCHES,
	/* Hits in those batches. */
	METRIC_LOST_HITS,
	/* Times that it could not be noted which thread had lost some. */
	METRIC_LOST_BY_WHOM,
	/* A return address could not be read. */
	METRIC_UNREADABLE,
	/* Hits that were dropped, for a jump's target or a CFA could not be read: METRIC_LOST_HITS
	 * counts them, too. */
	METRIC_DROPPED_HITS,
	/* More than CHAIN_MAX callers without an event. */
	METRIC_LONG_CHAIN,
	/* A CFA above 2^47. */
	METRIC_HIGH_ADDRESS,
	/* Hits while probes were put in and out, or counted alone: no failure, but they took time. */
	METRIC_UNREPORTED,
	/* Hits of threads of which no states are kept, while values are taken. */
	METRIC_NO_STATES,
	/* The ring buffer was full: states that were lost. */
	METRIC_LOST_STATES,
	/* Hits of probes for values alone. */
	METRIC_VALUE_HITS,
	/* Hits that were timed. */
	METRIC_TIMED,
	/* What their reports took. */
	METRIC_TIMED_NS,
	METRICS
};

/* The parts of a hit, in their order, of which each costs something. */
enum part {
	/* All of them, the last of which is that its events are put out. */
	PART_ALL,
	/* What is remembered of the thread is looked up. */
	PART_THREAD,
	/* What the plan says of the site is. */
	PART_SITE,
	/* The frame's address and the outcome. */
	PART_FRAME,
	/* Who has called the activation. */
	PART_CALLERS,
	/* The captured value. */
	PART_CAPTURE
};

/* Events: see package wire, which has the same layout in Go. */
#define EVENT_LOW(n, value) ((value) & ((1ULL << (n)) - 1))
#define EVENT_HIT(site, out, cfa)                                                                  \
	((__u64)(site) << 45 | (__u64)(out) << 44 | EVENT_LOW(44, (cfa) >> 3))
#define EVENT_CALLER(origin, address) (8ULL << 60 | (__u64)(origin) << 48 | EVENT_LOW(48, address))
#define EVENT_ORIGIN(event) ((event) >> 48 & 15)
#define EVENT_CAPTURED(value) (9ULL << 60 | EVENT_LOW(60, value))
/* No event has such a value. */
#define VALUE_UNREADABLE (1ULL << 60)
#define EVENT_REPEAT(count) (10ULL << 60 | (count))
#define EVENT_END(origin, address) (11ULL << 60 | (__u64)(origin) << 48 | EVENT_LOW(48, address))
#define EVENT_REGISTER(value) (12ULL << 60 | EVENT_LOW(60, value))
#define EVENT_INTERRUPT(address) (13ULL << 60 | EVENT_LOW(48, address))
/* With an Interrupt or an End: the instruction has faulted. */
#define EVENT_FAULTED (1ULL << 52)
#define EVENT_FAULT(sp) (14ULL << 60 | EVENT_LOW(48, sp))

/* Where the address of a caller, or of a thread's end, lies: see wire.Origin. */
enum origin {
	ORIGIN_INSIDE,
	ORIGIN_OUTSIDE,
	ORIGIN_HANDLER,
	ORIGIN_HANDLER_OUTSIDE,
	ORIGIN_UNREADABLE,
	ORIGIN_TRUNCATED,
	ORIGIN_KILLED,
	ORIGIN_RETURNS_TO_IMAGE,
	ORIGIN_RESYNC = 8
};

/* The place of an address that is in no traced image. */
#define NOWHERE (~0ULL)

#endif
