//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// Where a process's CPU time goes: a clock of each CPU runs this once a period, and it counts where
// the process is, if it is its turn there. User space knows what is at an address.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "arch_x86.h"

char _license[] SEC("license") = "Dual MIT/GPL";

enum sample_table { SAMPLE_ADDRESSES = 16384 };

/* Samples in user space by address. It is pre-allocated: a sample may come anywhere in the
 * kernel. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SAMPLE_ADDRESSES);
	__type(key, __u64);
	__type(value, __u64);
} addresses SEC(".maps");

/* Thread group. */
__u32 target;
/* Samples in the kernel, and those in user space that there was no room for. */
__u64 in_kernel, lost;
/* Keeps these types for the Go bindings. */
const enum sample_table *keep_for_btf __attribute__((unused));

SEC("perf_event")
int sample(struct registers *ctx)
{
	__u64 at = ctx->REG_PC, one = 1, *n;

	if (bpf_get_current_pid_tgid() >> 32 != target)
		return 0;
	if ((__s64)at < 0) {
		__sync_fetch_and_add(&in_kernel, 1);
		return 0;
	}
	n = bpf_map_lookup_elem(&addresses, &at);
	if (!n) {
		if (!bpf_map_update_elem(&addresses, &at, &one, BPF_NOEXIST))
			return 0;
		n = bpf_map_lookup_elem(&addresses, &at); /* another CPU may have been faster */
	}
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		__sync_fetch_and_add(&lost, 1);
	return 0;
}
