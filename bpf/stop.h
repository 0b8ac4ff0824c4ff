/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Stopping a process: who is stopped, and by whom. A program stops a process with stop_process; the
 * user's side, which reads the map stops, lets it go on, or the guard does (package loader/guard).
 * A stop of somebody else's must neither be undone by that nor be forgotten, so every signal is
 * noted as it is generated (note_signal):
 *
 *   signal                            ours  other    undone
 *   our SIGSTOP                       1     0        -
 *   our SIGSTOP, within a second      -     -        -       a debugger keeps somebody's
 *     of somebody else's                                     SIGSTOP from a thread that runs on
 *   somebody else's SIGSTOP           0     SIGSTOP  -
 *   SIGTSTP, SIGTTIN, SIGTTOU: ours   1     it       -       the process is stopped already
 *   SIGTSTP, SIGTTIN, SIGTTOU: else   -     -        -       it may have a handler: not noted
 *   SIGCONT                           0     0        other   whoever sends it
 *
 * A dash leaves the field as it is. Should the guard be gone, the process that is ours goes on as
 * soon as the guard's last thread has ended (note_end), and is stopped no more (orphaned).
 */
#ifndef WPPTRACE_STOP_H
#define WPPTRACE_STOP_H

#include "types.h"
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct signal_struct {
	/* Threads that have not come to their end. */
	struct {
		int counter;
	} live;
	/* Threads that are not gone. */
	int nr_threads;
	/* As wait has it. */
	int group_exit_code;
	void *tty;
} __attribute__((preserve_access_index));
struct task_struct {
	int pid, tgid;
	__u64 start_boottime;
	unsigned int ptrace;
	void *mm;
	struct task_struct *real_parent;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	struct {
		unsigned long sig[1];
	} blocked;
	struct {
		/* As the kernel has set it, on x86-64. */
		unsigned long fsbase;
	} thread;
	void *rseq;
	/* Since Linux 6.3. */
	__u32 rseq_len;
} __attribute__((preserve_access_index));

/*
 * What is known of stopping a process; an entry of the map stops. Only the program that sees the
 * process's signals writes it, where they come one after the other: a thread's SIGSTOP may be on
 * its way for long, and what overtakes it be meant for one before.
 */
struct stop {
	/* It is stopped, by us alone. */
	__u32 ours;
	/* The thread that we have sent SIGSTOP. */
	__u32 thread;
	/* Somebody else's signal to stop, which SIGCONT takes back: SIGSTOP, or one that has come since
	 * we have stopped the process; 0: none. */
	__u32 other;
	/* The signal to stop that the last SIGCONT has taken back. */
	__u32 undone;
	/* When SIGSTOP has come, ns. */
	__u64 since;
};

/* Processes that may be stopped, by number. A process is taken out when it comes to its end, so
 * that no later one with its number is taken for it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* set when it is known */
	__type(key, __u32);
	__type(value, struct stop);
} stops SEC(".maps");

/* Signals, and what stands for the sender where that is the kernel (SEND_SIG_PRIV). */
enum { SIGCONT = 18, SIGSTOP = 19, SIGTTOU = 22, SENT_BY_KERNEL = 1 };
#define SECOND 1000000000ULL

/* The process that has the probes, and that lets stopped processes go on if the user's side is
 * gone. If it is killed as well, only these programs are left to do that, where the kernel lets
 * them (6.16). */
__u32 guard;
__u32 orphaned;
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;
extern int bpf_send_signal_task(
	struct task_struct *task, int signal, enum pid_type type, __u64 value) __ksym __weak;

static __always_inline struct stop *stop_of(__u32 process)
{
	return bpf_map_lookup_elem(&stops, &process);
}

/* stop_process stops the process that runs, before another instruction of this thread runs. The
 * signal is for the thread: one for the process waits for the thread that was told first, which may
 * have lost its processor. */
static __always_inline void stop_process(__u32 process)
{
	struct stop *s = stop_of(process);

	if (s && !(s->ours && s->thread == (__u32)bpf_get_current_pid_tgid()) && !orphaned)
		bpf_send_signal_thread(SIGSTOP);
}

#define EBUSY 16
#define TRIES 256 /* some microseconds */

/* let_go lets a process go on, by the thread that was told to stop or, where that has ended, by the
 * first. The signal before it may be on its way yet. */
static long let_go(void *map, const __u32 *process, const struct stop *s, void *unused)
{
	struct task_struct *task;

	if (!s->ours || !bpf_task_from_pid || !bpf_send_signal_task)
		return 0;
	task = bpf_task_from_pid(s->thread);
	if (!task)
		task = bpf_task_from_pid(*process);
	if (!task)
		return 0;
	for (int i = 0; task->tgid == *process && i < TRIES; i++)
		if (bpf_send_signal_task(task, SIGCONT, PIDTYPE_TGID, 0) != -EBUSY)
			break;
	bpf_task_release(task);
	return 0;
}

/* note_end is called at the end of each thread, of whatever process: if it was the guard's last,
 * all that we have stopped go on. It returns whether it was. */
static __always_inline int note_end(const struct task_struct *task)
{
	if (task->tgid != guard || task->signal->live.counter)
		return 0;
	/* Before stops are read; note_signal writes one before it reads this. */
	__sync_lock_test_and_set(&orphaned, 1);
	bpf_for_each_map_elem(&stops, let_go, 0, 0);
	return 1;
}

/* forget_stop is called at the end of each thread. */
static __always_inline void forget_stop(struct task_struct *task)
{
	__u32 process = task->tgid;

	if (task->signal->live.counter == 0)
		bpf_map_delete_elem(&stops, &process);
}

/*
 * note_signal follows the table above. args are those of signal_generate, which runs under the lock
 * of the process's signals, so that they are seen in the order in which they take effect.
 */
static __always_inline void note_signal(struct stop *s, __u64 *args)
{
	struct task_struct *to = (void *)args[2];
	int sig = args[0];

	if (sig < SIGCONT || sig > SIGTTOU)
		return;
	if (sig == SIGSTOP && args[1] == SENT_BY_KERNEL) {
		/* Ours a thread sends itself, or the kernel's own does for it, a debugger's another
		 * process. A thread that still runs long after somebody's SIGSTOP has a debugger who has
		 * kept that from it. */
		struct task_struct *from = (void *)bpf_get_current_task_btf();

		if (!args[3] && (from->pid == to->pid || !from->mm) &&
			(s->other != SIGSTOP || bpf_ktime_get_ns() - s->since > SECOND)) {
			s->thread = to->pid;
			s->other = 0;
			__sync_lock_test_and_set(&s->ours, 1);
			if (orphaned && bpf_send_signal_task) /* it was on its way */
				bpf_send_signal_task(to, SIGCONT, PIDTYPE_TGID, 0);
		}
	} else if (sig == SIGCONT) {
		s->undone = s->other;
		s->ours = s->other = 0;
	} else if (sig == SIGSTOP) {
		s->ours = 0;
		s->other = SIGSTOP;
		s->since = bpf_ktime_get_ns();
	} else if (s->ours) {
		s->other = sig;
	}
}

#endif
