//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// Paths are counted in the kernel, by a plan whose probes tell them apart (package
// loader/counting). Nothing is reported; who wants to know how often a path ran reads the counters.
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "count.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct task_struct {
	int pid, tgid;
	__u64 start_boottime;
	unsigned long sas_ss_sp, sas_ss_size;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set when the plan is known */
	__type(key, __u32);
	__type(value, struct count_step);
} steps SEC(".maps");
/* Of keys that are below its size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set when the plan is known */
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");
/* Of all others: pre-allocated, so that a hit allocates nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set when the plan is known */
	__type(key, __u64);
	__type(value, __u64);
} sparse SEC(".maps");

/* Nearly every thread has a slot for itself; those whose slot another has are in the map. */
#define SLOTS 4096
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct count_thread);
} slots SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, __u32);
	__type(value, struct count_thread);
} threads SEC(".maps");
/* Thread group. */
volatile const __u32 target;
/* Keys below it are counted in an array. */
volatile const __u64 dense;
/* Where the image's code is. */
volatile const __u64 image_begin;
volatile const __u64 image_size;
/* The row of a thread of which it is not known what its path did before. */
volatile const __u32 unsure;
__u32 enabled;
/* CLOCK_BOOTTIME; 0: every thread is counted from its beginning. */
__u64 enabled_at;
/* The target has called exec. */
__u32 replaced;
__u64 metrics[COUNT_METRICS];
/* Keeps these types for the Go bindings. */
const struct {
	enum count_metric m;
	enum count_cookie c;
	enum count_row r;
} *keep_for_btf __attribute__((unused));

static __always_inline void note(enum count_metric m)
{
	__sync_fetch_and_add(&metrics[m], 1);
}

static __always_inline const struct count_step *step_at(__u64 index)
{
	__u32 at = index;

	return bpf_map_lookup_elem(&steps, &at);
}

static __always_inline long read_user(__u64 *to, __u64 from)
{
	return bpf_probe_read_user(to, 8, (void *)from);
}

/* Hits on one CPU may interrupt each other: increments are atomic. One a nanosecond is 2^64 of them
 * in 584 years. */
static __always_inline void increment(__u64 *n)
{
	__sync_fetch_and_add(n, 1);
}

static __noinline int count_sparse(__u64 key)
{
	__u64 *n, zero = 0;

	n = bpf_map_lookup_elem(&sparse, &key);
	if (!n) {
		bpf_map_update_elem(&sparse, &key, &zero, BPF_NOEXIST); /* another CPU may be faster */
		n = bpf_map_lookup_elem(&sparse, &key);
	}
	if (n)
		increment(n);
	else
		note(COUNT_FULL);
	return 0;
}

static __always_inline void count_key(__u64 key)
{
	__u32 at = key;
	__u64 *n;

	if (key >= dense) {
		if (key != KEY_NONE)
			count_sparse(key);
		return;
	}
	n = bpf_map_lookup_elem(&counters, &at);
	if (n)
		increment(n);
}

static __always_inline struct count_thread *slot_of(__u32 tid)
{
	__u32 slot = tid & (SLOTS - 1);

	return bpf_map_lookup_elem(&slots, &slot);
}

/* begin_thread gives a thread that has no slot one, or an entry of the map. */
static __noinline struct count_thread *begin_thread(struct count_thread *slot, __u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct count_thread *t = bpf_map_lookup_elem(&threads, &tid), none = {.tid = tid};

	if (t || !slot)
		return t;
	if (!__sync_val_compare_and_swap(&slot->tid, 0, tid)) {
		t = slot;
	} else {
		bpf_map_update_elem(&threads, &tid, &none, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&threads, &tid);
	}
	if (!t)
		return 0;
	t->waiting = 0;
	t->hits = 0;
	t->cfa = task->start_boottime < enabled_at ? CFA_ANY : 0;
	t->row = unsure;
	return t;
}

/* thread_of finds what is remembered of a thread, if anything. */
static __always_inline struct count_thread *thread_of(__u32 tid)
{
	struct count_thread *slot = slot_of(tid);

	return slot && slot->tid == tid ? slot : bpf_map_lookup_elem(&threads, &tid);
}

/* registers_of are those of the current thread in user space. */
static __always_inline struct registers *registers_of(void)
{
	return (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
}

/* note_amid notes a thread that does not go on where it is, amid the image's code and in no system
 * call. */
static __always_inline void note_amid(void)
{
	struct registers *regs = registers_of();
	__u64 pc = 0;
	__s64 call = 0;

	bpf_probe_read_kernel(&pc, 8, &regs->REG_PC);
	bpf_probe_read_kernel(&call, 8, &regs->REG_SYSCALL);
	if (enabled && pc - image_begin < image_size && call < 0)
		note(COUNT_AMID);
}

/* note_hit notes that a hit begins or ends: who reads the counters sees by it whether a thread's
 * state was the same meanwhile. */
static __always_inline void note_hit(struct count_thread *t)
{
	volatile __u64 *hits = &t->hits;

	*hits += 1;
	asm volatile("" ::: "memory");
}

SEC("uprobe.multi")
int count(struct registers *regs)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id;
	struct count_thread *t;

	if (id >> 32 != target || !enabled)
		return 0;
	t = slot_of(tid);
	if (t && t->tid != tid)
		t = begin_thread(t, tid);
	if (!t) {
		note(COUNT_NO_THREAD);
		return 0;
	}
	note_hit(t);
	count_hit(regs, t, bpf_get_attach_cookie(regs));
	note_hit(t);
	return 0;
}

/* A signal's handler is about to run, in the midst of a path perhaps. */
SEC("tp_btf/signal_deliver")
int on_signal(__u64 *args)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct signal_stack stack = {task->sas_ss_sp, task->sas_ss_size};
	struct count_thread *t;
	__u64 sp = 0;

	if (id >> 32 != target)
		return 0;
	note_amid();
	t = thread_of(id);
	if (t && !bpf_probe_read_kernel(&sp, 8, &registers_of()->REG_SP))
		save(t, sp, &stack);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *args)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tid = id;
	struct count_thread *slot;

	if (id >> 32 != target)
		return 0;
	note_amid();
	slot = thread_of(tid);
	if (slot)
		__sync_fetch_and_add(&metrics[COUNT_ENDED], slot->hits);
	slot = slot_of(tid);
	if (slot && slot->tid == tid)
		slot->tid = 0;
	else
		bpf_map_delete_elem(&threads, &tid);
	return 0;
}

/* Another program in the same process: its addresses are not ours. */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *args)
{
	if (bpf_get_current_pid_tgid() >> 32 == target) {
		enabled = 0;
		replaced = 1;
	}
	return 0;
}
