//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// Which places of a process have run since probes were put there: each is hit once as a rule, for
// user space takes the probes of those out that were. Nothing of the process is read but its
// registers.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "arch_x86.h"

char _license[] SEC("license") = "Dual MIT/GPL";

enum first_cookie {
	FIRST_CONDITION = 32, /* bits of a cookie below that are the site's number; above, what is */
	FIRST_ALWAYS = 16,    /* the condition of its jump, or this */
	FIRST_OUTCOMES = 2,   /* counters of a site: not jumped, jumped */
};

/* Passages of a site that are reported: the first one where any is, and this and each power of two
 * above. */
enum first_report { FIRST_OFTEN = 64 };

/* A passage that is reported. */
struct first_hit {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	__u32 site;
	__u32 outcome;
	__u64 passages; /* of the site with this outcome so far */
	__u32 tid;
	__u32 reserved;
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
/* Keeps these types for the Go bindings. */
const struct {
	enum first_cookie c;
	enum first_report r;
	struct first_hit h;
} *keep_for_btf __attribute__((unused));

static __always_inline void report(__u64 id, __u32 site, __u32 outcome, __u64 n)
{
	struct first_hit *h = bpf_ringbuf_reserve(&reports, sizeof(*h), 0);

	if (!h) {
		__sync_fetch_and_add(&unreported, 1);
		return;
	}
	*h = (struct first_hit){bpf_ktime_get_ns(), site, outcome, n, (__u32)id, 0};
	bpf_ringbuf_submit(h, 0);
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
	code = cookie >> FIRST_CONDITION;
	if (code < FIRST_ALWAYS)
		outcome = condition(code, regs->REG_FLAGS);
	index = site * FIRST_OUTCOMES + outcome;
	all = bpf_map_lookup_elem(&passages, &index);
	if (!all)
		return 0;
	n = __sync_fetch_and_add(all, 1) + 1;
	if ((n == 1 && each) || (n >= FIRST_OFTEN && !(n & (n - 1))))
		report(id, site, outcome, n);
	return 0;
}
