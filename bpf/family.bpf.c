//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// Who belongs to a process: those that it starts, those that these start, and what any of them
// becomes by exec. Each is stopped before its first instruction, so that nothing of it runs unseen,
// and is reported.
#include "stop.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct sighand_struct {
	struct {
		struct {
			void *sa_handler;
		} sa;
	} action[64]; /* from signal 1 on */
} __attribute__((preserve_access_index));

/* Those that have not run yet. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FAMILY_MAX);
	__type(key, __u32);
	__type(value, __u8);
} newborns SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

/* New ones belong, and are stopped. */
__u32 following;
/* Processes that there was no room for: they run as if they did not belong. */
__u32 missed;
/* Keeps these types for the Go bindings. */
const struct {
	enum family_event e;
	enum family_table t;
	enum obstacle o;
	struct news n;
} *keep_for_btf __attribute__((unused));

/* obstacle says why the process that runs is not to be stopped. */
static __always_inline enum obstacle obstacle(struct task_struct *task)
{
	struct task_struct *parent = task->real_parent;
	void *ignored = (void *)1;

	if (task->ptrace)
		return OBSTACLE_DEBUGGER; /* it would take our signal for one of the process */
	/* A shell that runs jobs on a terminal takes one that stops for stopped by its user. */
	if (parent->signal->tty && parent->sighand->action[SIGTTOU - 1].sa.sa_handler == ignored)
		return OBSTACLE_JOB_CONTROL;
	return OBSTACLE_NONE;
}

/* report_process stops the process that runs, and reports it: in this order, for who reads that may
 * let it go at once. */
static __always_inline void report_process(struct task_struct *task, enum family_event what)
{
	struct news *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	enum obstacle o = obstacle(task);

	if (!e) {
		__sync_fetch_and_add(&missed, 1);
		return;
	}
	*e = (struct news){task->tgid, what, o};
	bpf_get_current_comm(e->name, sizeof(e->name));
	if (o == OBSTACLE_NONE)
		stop_process(task->tgid);
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];
	__u32 process = child->tgid;
	struct stop none = {};
	__u8 yes = 1;

	if (!following || parent->tgid == child->tgid || !stop_of(parent->tgid))
		return 0;
	if (bpf_map_update_elem(&stops, &process, &none, BPF_ANY) ||
		(child->mm != parent->mm && bpf_map_update_elem(&newborns, &process, &yes, BPF_ANY)))
		__sync_fetch_and_add(&missed, 1);
	return 0;
}

/* A process begins as its parent's system call, of whatever number, returns 0. One that shares its
 * parent's memory runs the parent's program in it until it calls exec, and the parent may wait for
 * that. */
SEC("tp_btf/sys_exit")
int on_first_return(__u64 *args)
{
	struct task_struct *task;
	__u32 process;

	if (args[1] || !following)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	process = task->tgid;
	if (task->pid == task->tgid && !bpf_map_delete_elem(&newborns, &process) && stop_of(process))
		report_process(task, FAMILY_BORN);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (following && stop_of(task->tgid))
		report_process(task, FAMILY_EXEC);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 process = task->tgid;

	note_end(task);
	if (task->signal->live.counter == 0)
		bpf_map_delete_elem(&newborns, &process);
	forget_stop(task);
	return 0;
}

SEC("tp_btf/signal_generate")
int on_signal_generate(__u64 *args)
{
	struct task_struct *to = (void *)args[2];
	struct stop *s = stop_of(to->tgid);

	if (s)
		note_signal(s, args);
	return 0;
}
