/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The structures and numbers that the BPF program, its user-space build and the Go bindings share. */
#ifndef WPPTRACE_TYPES_H
#define WPPTRACE_TYPES_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define MAX_SITES (1 << 18) /* a word has 18 bits for the site */
#define BATCH_WORDS 64
#define CHAIN_MAX 56     /* callers that may have made no word yet: the plan keeps them few */
#define RESYNC_MAX 16384 /* callers sent when a thread is seen for the first time, or after a loss */

/* An entry of the sites array; the attach cookie is its index. */
struct site {
	__s32 offset;   /* CFA = base register + offset, or what lies there: SITE_SLOT */
	__u32 routine;
	__u8 base;      /* hardware number: 4 rsp, 5 rbp */
	__u8 condition; /* condition code of a conditional jump, or CONDITION_NONE */
	__u8 flags;     /* SITE_* */
	__u8 case_reg;  /* the register with the value, or the base of its address; NO_REG: none */
	__u8 case_index; /* that of its address or, of a register, what is subtracted; NO_REG: none */
	__u8 case_scale;
	__u8 case_size; /* bytes */
	__u8 library;   /* the image that it is in: an index of libraries, plus one; 0: the executable */
	__s32 case_disp;
	__u32 stays;    /* 1 << outcome: after it the activation neither calls nor ends before its next word */
};
enum site_none { CONDITION_NONE = 16, NO_REG = 16 };
enum site_flag {
	SITE_FIRST = 1,        /* may be the first word of its activation */
	SITE_CASE = 2,         /* tells a switch's case, when the outcome is 0 */
	SITE_CASE_TAKEN = 4,   /* no: when it is 1 */
	SITE_CASE_MEMORY = 8,  /* the case is in memory */
	SITE_CASE_RIP = 16,    /* case_disp is relative to the image */
	SITE_CASE_TARGET = 32, /* the case is an absolute address: sent as at link time */
	SITE_SLOT = 64,        /* the routine keeps its CFA in memory, at base register + offset */
	SITE_VALUE = 128       /* tells a value, as it would a case, whatever the outcome */
};

enum library_table { LIBRARIES_MAX = 32 }; /* a power of two: an index is bounded by a mask */

/* An observed image besides the executable. */
struct library {
	__u64 bias;   /* load address minus link-time address */
	__u64 size;   /* from the link-time address 0 on; 0: it is not mapped */
	__u64 first;  /* the link-time address where its code begins */
	__u64 offset; /* what is added to a link-time address so that no two images have one in common */
};

/* An entry of the calls array, a table with open addressing: what is known of a call of observed code, by its return address. */
struct call {
	__u64 address; /* link-time, with the offset of its image; 0: the entry is empty */
	__u32 depth;   /* CFA - rsp before the call instruction, bytes */
	__u32 spoken;  /* its routine has made a word before it calls */
};
enum call_table {
	CALL_PROBES = 16,            /* a call is at most so many entries, less one, behind the first that it may be at */
	CALL_MULTIPLIER = 0x9e3779b1 /* 2^32 divided by the golden ratio, which spreads addresses (Knuth, volume 3, 6.4) */
};
static __always_inline __u32 call_slot(__u64 address, __u32 shift)
{
	return (__u32)address * CALL_MULTIPLIER >> shift;
}

/* What call_at tells of a call, 0 where it knows none: these, and the depth in the bits from CALL_DEPTH_SHIFT on. */
enum call_bits { CALL_KNOWN = 1, CALL_SPOKEN = 2 };
#define CALL_DEPTH_SHIFT 2
static __always_inline __u64 told_call(const struct call *c)
{
	return (__u64)c->depth << CALL_DEPTH_SHIFT | (c->spoken ? CALL_SPOKEN : 0) | CALL_KNOWN;
}

/* What goes through the ring buffer: count words of one thread. */
struct batch {
	__u32 tid;
	__u32 count;
	__u64 started;  /* CLOCK_BOOTTIME when the thread began, ns: tells it from a later one with its number */
	__u64 sequence; /* from 0 for each thread; lost batches count */
	__u64 hits;     /* hits of the thread so far, those of this batch included */
	__u64 lost;     /* of them, lost so far */
	__u64 words[BATCH_WORDS];
};
_Static_assert((BATCH_WORDS & (BATCH_WORDS - 1)) == 0, "an index is bounded by a mask");

/* A thread, told from a later one with its number. */
struct life {
	__u64 started; /* as in its batches */
	__u64 tid;
};

/* What a thread has lost; hits counts all that it had up to its last loss. */
struct loss {
	__u64 hits, lost;
};

/*
 * What is known of stopping a process so that nothing is lost; an entry of a map by process number. Only the program that sees its signals writes it, where they come one after
 * the other: a thread's SIGSTOP may be on its way for long, and what overtakes it be meant for one before.
 */
struct stop {
	__u32 ours;  /* it is stopped, by us alone */
	__u32 thread; /* that has been told to stop by us */
	__u32 other; /* somebody else's signal to stop, which SIGCONT takes back: SIGSTOP, or what has come since we have stopped it; 0: none */
	__u32 undone; /* the signal to stop that the last SIGCONT has taken back */
	__u64 since; /* when SIGSTOP has come, ns */
};

enum ending_flag { ENDED = 1 << 30 }; /* no process ends with that */

enum family_table { FAMILY_MAX = 8192 }; /* processes that live at the same time */
enum family_event { FAMILY_BORN, FAMILY_EXEC };
enum obstacle { OBSTACLE_NONE, OBSTACLE_DEBUGGER, OBSTACLE_JOB_CONTROL };

/* A process that has begun, or another program. It is stopped, unless there is an obstacle. */
struct news {
	__u32 process;
	__u32 event;    /* enum family_event */
	__u32 obstacle; /* enum obstacle */
	char name[16];  /* that of its first thread, ended by 0 */
};

/* Failures and the like, counted: index into the metrics array. */
enum metric {
	METRIC_NO_STORAGE,     /* no task storage for a thread */
	METRIC_NO_SITE,        /* a cookie that names no site */
	METRIC_LOST_BATCHES,   /* the ring buffer was full */
	METRIC_LOST_HITS,      /* hits in those batches */
	METRIC_LOST_BY_WHOM,   /* times that it could not be noted which thread had lost some */
	METRIC_UNREADABLE,     /* a return address could not be read */
	METRIC_FORGONE,        /* hits that were given up, for a jump's target or a CFA could not be read: METRIC_LOST_HITS counts them too */
	METRIC_LONG_CHAIN,     /* more than CHAIN_MAX callers without a word */
	METRIC_HIGH_ADDRESS,   /* a CFA above 2^47 */
	METRIC_UNREPORTED,     /* hits while probes were put in and out, or counted alone: no failure, but they took time */
	METRIC_TIMED,          /* hits that were timed */
	METRIC_TIMED_NS,       /* what their reports took */
	METRICS
};

/* struct pt_regs as the kernel lays it out. */
struct registers {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, orig_rax, rip, cs, flags, rsp, ss;
};

/* Words: see package wire. */
#define WORD_WITNESS(site, out, cfa) ((__u64)(site) << 45 | (__u64)(out) << 44 | (((cfa) >> 3) & ((1ULL << 44) - 1)))
#define WORD_FROM(kind, address) (8ULL << 60 | (__u64)(kind) << 48 | ((address) & ((1ULL << 48) - 1)))
#define WORD_PLACE(word) ((word) >> 48 & 15)
#define WORD_CASE(value) (9ULL << 60 | ((value) & ((1ULL << 60) - 1)))
#define CASE_UNREADABLE (1ULL << 60) /* no word has such a value */
#define WORD_REPEAT(count) (10ULL << 60 | (count))
#define WORD_REGISTER(value) (12ULL << 60 | ((value) & ((1ULL << 60) - 1)))
#define WORD_INTERRUPT(address) (13ULL << 60 | ((address) & ((1ULL << 48) - 1)))
#define WORD_FAULTED (1ULL << 52) /* with an Interrupt or an End: the instruction has faulted */
#define WORD_FAULT(sp) (14ULL << 60 | ((sp) & ((1ULL << 48) - 1)))
#define WORD_END(kind, address) (11ULL << 60 | (__u64)(kind) << 48 | ((address) & ((1ULL << 48) - 1)))
enum from { FROM_INSIDE, FROM_OUTSIDE, FROM_HANDLER, FROM_HANDLER_OUTSIDE, FROM_UNREADABLE, FROM_TRUNCATED, FROM_KILLED, FROM_CALLED, FROM_RESYNC = 8 };

/* System calls by which a thread ends, from asm/unistd.h. */
enum { SYSCALL_EXECVE = 59, SYSCALL_EXIT = 60, SYSCALL_EXIT_GROUP = 231, SYSCALL_EXECVEAT = 322 };

/* The place of an address that is in no observed image. */
#define NOWHERE (~0ULL)

/* Where a signal frame keeps what it interrupted, from the CFA of the handler: uc_mcontext.gregs. */
#define SIGNAL_FRAME_REGISTERS 40
enum signal_frame { FRAME_R8, FRAME_R9, FRAME_R10, FRAME_R11, FRAME_R12, FRAME_R13, FRAME_R14, FRAME_R15, FRAME_RDI, FRAME_RSI, FRAME_RBP, FRAME_RBX, FRAME_RDX, FRAME_RAX,
	FRAME_RCX, FRAME_RSP, FRAME_RIP, FRAME_REGISTERS };

#endif
