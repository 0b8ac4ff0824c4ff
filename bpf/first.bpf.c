//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// Which places of a process have run since probes were put there: each is hit once as a rule, for
// user space takes the probes of those out that were. Nothing of the process is read but its
// registers.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "arch_x86.h"

struct task_struct {
	int tgid;
	void *mm;
} __attribute__((preserve_access_index));

char _license[] SEC("license") = "Dual MIT/GPL";

enum first_cookie {
	/* Bits of a cookie below that are the site's number, the next 8 the condition of its jump, */
	FIRST_CONDITION = 32,
	FIRST_ALWAYS = 16, /* or this, */
	/* this and the next say of each outcome that its first passage is not reported. */
	FIRST_QUIET = 40,
	FIRST_DEAR = 42,    /* this is set where a passage takes long */
	FIRST_OUTCOMES = 2, /* counters of a site: not jumped, jumped */
};

/* Passages of a site that are reported: the first one where any is, and this and each power of two
 * above; of what takes long, the other one. */
enum first_report { FIRST_OFTEN = 64, FIRST_DEAR_OFTEN = 4 };

/* Bytes of the stack that are reported with a first passage. */
enum first_stack { FIRST_PAGE = 4096, FIRST_STACK = 2 * FIRST_PAGE };

/* A passage that is reported. */
struct first_hit {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u32 site;
	__u32 outcome;
	__u64 passages; /* of the site with this outcome so far */
	__u32 tid;
	__u32 stack_size; /* bytes of what follows, in a first passage */
	/* Registers. */
	__u64 pc, sp, fp;
};
/* A first passage, with the stack from its pointer on. */
struct first_trace {
	struct first_hit hit;
	__u8 stack[FIRST_STACK];
};

/* Passages by site and outcome. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set when the sites are known */
	__type(key, __u32);
	__type(value, __u64);
} passages SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} reports SEC(".maps");

/* Thread group. */
__u32 target;
/* The first passage of each site is reported. */
volatile const __u32 each;
/* Reports that there was no room for. */
__u64 unreported;
/* Processes that the thread group has started whose memory is a copy of its own. */
__u64 copies;
/* Keeps these types for the Go bindings. */
const struct {
	enum first_cookie c;
	enum first_report r;
	enum first_stack s;
	struct first_trace t;
} *keep_for_btf __attribute__((unused));

static __always_inline void fill(struct first_hit *h, __u64 id, __u32 site, __u32 outcome, __u64 n)
{
	*h = (struct first_hit){.time = bpf_ktime_get_ns(),
		.site = site,
		.outcome = outcome,
		.passages = n,
		.tid = (__u32)id};
}

/* report_often reports a passage of what is passed often. */
static __always_inline void report_often(__u64 id, __u32 site, __u32 outcome, __u64 n)
{
	struct first_hit *h = bpf_ringbuf_reserve(&reports, sizeof(*h), 0);

	if (!h) {
		__sync_fetch_and_add(&unreported, 1);
		return;
	}
	fill(h, id, site, outcome, n);
	bpf_ringbuf_submit(h, 0);
}

/* report_first reports a first passage, with the top of the stack: the rest of its first page, and
 * the next one, if there is one. */
static __always_inline void report_first(
	struct registers *regs, __u64 id, __u32 site, __u32 outcome)
{
	struct first_trace *t = bpf_ringbuf_reserve(&reports, sizeof(*t), 0);
	__u64 sp = regs->REG_SP;
	__u32 rest = FIRST_PAGE - (sp & (FIRST_PAGE - 1));

	if (!t) {
		__sync_fetch_and_add(&unreported, 1);
		return;
	}
	fill(&t->hit, id, site, outcome, 1);
	t->hit.pc = regs->REG_PC;
	t->hit.sp = sp;
	t->hit.fp = regs->REG_FP;
	if (rest <= FIRST_PAGE && !bpf_probe_read_user(t->stack, rest, (void *)sp)) {
		t->hit.stack_size = rest;
		if (!bpf_probe_read_user(t->stack + rest, FIRST_PAGE, (void *)(sp + rest)))
			t->hit.stack_size = rest + FIRST_PAGE;
	}
	bpf_ringbuf_submit(t, 0);
}

SEC("uprobe.multi")
int first(struct registers *regs)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie, n, *all;
	__u32 site, index, code, outcome = 0;

	if (id >> 32 != target)
		return 0;
	cookie = bpf_get_attach_cookie(regs);
	site = cookie;
	code = (__u8)(cookie >> FIRST_CONDITION);
	if (code < FIRST_ALWAYS)
		outcome = condition(code, regs->REG_FLAGS);
	index = site * FIRST_OUTCOMES + outcome;
	all = bpf_map_lookup_elem(&passages, &index);
	if (!all)
		return 0;
	n = __sync_fetch_and_add(all, 1) + 1;
	if (n == 1 && each && !(cookie >> (FIRST_QUIET + outcome) & 1))
		report_first(regs, id, site, outcome);
	else if (n >= (cookie >> FIRST_DEAR & 1 ? FIRST_DEAR_OFTEN : FIRST_OFTEN) && !(n & (n - 1)))
		report_often(id, site, outcome, n);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];

	if ((__u32)parent->tgid == target && child->tgid != parent->tgid && child->mm != parent->mm)
		__sync_fetch_and_add(&copies, 1);
	return 0;
}
