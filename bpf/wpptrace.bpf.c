//go:build ignore

// SPDX-License-Identifier: MIT OR GPL-2.0
// The tracer's one program: the kernel reports which site was hit, with which outcome and in which
// activation; the decoder thinks.
#include "stop.h"
#include "env.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 26);
} ring SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set when the plan is known */
	__type(key, __u32);
	__type(value, struct site);
} sites SEC(".maps");
struct {
	__uint(type,
		BPF_MAP_TYPE_ARRAY); /* a look-up costs a third of a hash map's, which is made by calls */
	__uint(max_entries, 1);  /* set when the plan is known */
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");
/* What was left of threads that had come to their end, or were drained, when the other ring had no
 * room for it: the user's side reads it when all before it has been read. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22); /* less where some may be lost */
} overflow_ring SEC(".maps");
/* Hits that were not reported, by site: while probes go in and out, and of those that stand between
 * windows. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* set when the plan is known */
	__type(key, __u32);
	__type(value, __u64);
} site_hits SEC(".maps");
/* Hits and losses of threads that had losses: a dead thread's last loss is known by this alone. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1 << 16);
	__type(key, struct life);
	__type(value, struct loss);
} losses SEC(".maps");

/* What is read at hits, where values are taken; as sites, and behind those the probes for values
 * alone. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set when the plan is known, as of the next three */
	__type(key, __u32);
	__type(value, struct look);
} looks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct load_step);
} load_steps SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} load_cases SEC(".maps");
/* By the entries of calls: the step at which load programs go on behind a call; 0: not known. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} after SEC(".maps");

/* Thread group. */
volatile const __u32 target;
/* Of the executable: load address minus link-time address. */
volatile const __u64 image_base;
volatile const __u64 image_size;
/* Libraries are traced too. Where not, the verifier takes out what serves them. */
volatile const __u32 shared;
struct library libraries[LIBRARIES_MAX];
__u32 library_count;
/* Of the table of calls. */
volatile const __u32 call_shift;
/* Bytes in the ring above which the consumer is woken. */
volatile const __u64 wake_watermark;
/* Bytes in the ring above which the target is stopped; 0: it is not. */
volatile const __u64 stop_watermark;
/* Bytes in the ring above which its room is for threads that run on until they have stopped. */
volatile const __u64 overflow_watermark;
/* enum part: what a hit does last, where its parts are measured; else 0. The verifier takes out
 * what asks for it. */
volatile const __u32 last_part;
/* Hits take states. Where not, the verifier takes out what does. */
volatile const __u32 values;
/* The index in looks of the first probe for values alone. */
volatile const __u32 extra_looks;
/* CLOCK_BOOTTIME; 0: every thread is traced from its beginning. */
__u64 enabled_at;
__u32 enabled;
/* Probes go in or out: 1, or CHANGING_ON and the number of the CPU on which they do: a hit there
 * does not wait, for it would keep them from that. */
#define CHANGING_ON 2
__u32 changing;
/* ns, CLOCK_MONOTONIC: until then hits wait at most, whatever becomes of who changes them. */
__u64 changing_until;
/* The target has called exec. */
__u32 replaced;
/* Its last thread has come to its end: ENDED, and how, as wait has it. */
__u32 ended;
/* Processes that it has started, none of which is traced, */
__u32 forked;
/* and those of them whose memory is a copy, with the probes that stood. */
__u32 copied;
/* Copies of the probes go out of these. */
__u32 clearing;
/* Its first thread has ended, and others have not: the kernel does not know the process's memory by
 * it any more. */
__u32 headless;
/* Threads of any process have their memory still when they end here (Linux 6.16). */
__u32 ends_early;
/* Times that it has mapped code of a file. */
__u32 mapped;
/* It is stopped where it maps code, until that has been dealt with: probes stand, or are about to.
 */
__u32 holding;
/* Of the times that it has mapped code, those that have been dealt with. */
__u32 settled;
/* It has gone on before they were. */
__u32 escaped;
/* Where threads that were hit had their areas of restartable sequences, which the kernel writes
 * whenever one has lost its processor, where values are taken, */
struct area sequences[SEQUENCES_MAX];
/* and how many these are; SEQUENCES_MAX: there may be more. */
__u32 sequence_count;
/* Threads whose last batch was on its way when drain came to them. */
__u32 unsent;
__u64 metrics[METRICS];
/* Keeps these types for the Go bindings. */
const struct {
	enum metric m;
	enum site_flag f;
	enum site_none n;
	enum origin o;
	enum call_table t;
	enum library_table l;
	enum ending_flag g;
	enum part p;
	enum calling c;
	enum call_bits b;
	enum look_flag k;
	enum load_op d;
	enum cell e;
	enum load_limit h;
	enum sequence_table q;
	struct look look;
	struct load_step step;
	struct states states;
} *keep_for_btf __attribute__((unused));

static __always_inline void add(enum metric m, __u64 n)
{
	__sync_fetch_and_add(&metrics[m], n);
}
static __always_inline void count(enum metric m)
{
	add(m, 1);
}
static __always_inline int ends_behind(enum part p)
{
	return last_part == p;
}
static __always_inline long read_user(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from);
}
__noinline __u64 place_in_library(__u64 address)
{
	for (__u32 i = 0; i < LIBRARIES_MAX; i++) {
		if (i >= library_count)
			break;
		struct library *l = &libraries[i];
		if (address - l->bias < l->size)
			return address - l->bias + l->offset;
	}
	return NOWHERE;
}
static __always_inline __u64 place(__u64 address)
{
	if (address - image_base < image_size)
		return address - image_base;
	return shared ? place_in_library(address) : NOWHERE;
}
static __always_inline __u64 bias_of(__u32 library)
{
	if (shared && library)
		return libraries[(library - 1) & (LIBRARIES_MAX - 1)].bias;
	return image_base;
}
/* search_calls looks for a call in the table, in up to n entries from slot on. */
static __always_inline struct call *search_calls(__u64 key, __u32 *slot, int n)
{
	for (int i = 0; i < n; i++, (*slot)++) {
		struct call *c = bpf_map_lookup_elem(&calls, slot);
		if (!c || !c->address)
			return 0;
		if (c->address == key)
			return c;
	}
	return 0;
}
/* find_call looks in the entries from slot on. */
__noinline __u64 find_call(__u64 key, __u32 slot)
{
	struct call *c = search_calls(key, &slot, CALL_PROBES - 1);

	return c ? call_info(c) : 0;
}
/* find_entry is the index of a call in the table; NOWHERE: it is not there. */
__noinline __u64 find_entry(__u64 key)
{
	__u32 slot = call_slot(key, call_shift);

	return search_calls(key, &slot, CALL_PROBES) ? slot : NOWHERE;
}
static __always_inline __u64 call_at(__u64 key)
{
	__u32 slot = call_slot(key, call_shift);
	struct call *c;

	if (key == NOWHERE || !(c = bpf_map_lookup_elem(&calls, &slot)) || !c->address)
		return 0;
	return c->address == key ? call_info(c) : find_call(key, slot + 1); /* as a rule it is there */
}
static __always_inline __u64 waiting_in(void *buffer)
{
	return bpf_ringbuf_query(buffer, BPF_RB_AVAIL_DATA);
}
static __always_inline long output_to(void *buffer, void *record, __u64 n, __u64 most, __u64 wake)
{
	/* In 64 bits from here on: Linux 6.1 does not see that the bound of a copy in 32 bits is that
	 * of what it copies. */
	asm volatile("" : "+r"(n));
	if (n > most)
		return 0;
	return bpf_ringbuf_output(buffer, record, RECORD_HEADER + n * 8, wake);
}
static __always_inline long output(void *record, __u64 n, __u64 most)
{
	__u64 waiting = waiting_in(&ring);
	/* Where it is twice as much, the consumer has been woken long since and is not done. To wake it
	 * for each batch would cost several times what the batch does. */
	int full = waiting + RECORD_HEADER + most * 8 > wake_watermark && waiting < 2 * wake_watermark;

	return output_to(&ring, record, n, most, full ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}
static __always_inline int overflows(void)
{
	return waiting_in(&overflow_ring) || waiting_in(&ring) > overflow_watermark;
}
static __always_inline long output_overflow(void *record, __u64 n, __u64 most)
{
	/* Who reads the ring looks here, too. */
	return output_to(&overflow_ring, record, n, most, BPF_RB_NO_WAKEUP);
}
static __always_inline void note_loss(struct batch *b, __u64 hits)
{
	struct life who = {b->started, b->tid};
	struct loss l = {b->hits, b->lost};

	add(METRIC_LOST_HITS, hits);
	if (bpf_map_update_elem(&losses, &who, &l, BPF_ANY))
		count(METRIC_LOST_BY_WHOM);
}
/* The verifier has to see the bound. */
#define bound_index(n, size) asm volatile("%0 &= %1" : "+r"(n) : "i"((size) - 1))
#define loop(n, step, ctx) bpf_loop(n, step, ctx, 0)

static __always_inline __u64 load_register(struct registers *regs, __u32 number)
{
	__u64 v = 0;

	/* The verifier knows the context by constant offsets alone. */
	switch (number & 15) {
#define LOAD_REGISTER(n, name)                                                                     \
	case n:                                                                                        \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                                      \
			: "=r"(v)                                                                              \
			: "r"(regs), "i"(__builtin_offsetof(struct registers, name)));                         \
		break;
		EACH_REGISTER(LOAD_REGISTER)
	}
	return v;
}
static __noinline __u64 register_value(struct registers *regs, __u32 number)
{
	return load_register(regs, number);
}

static __always_inline int takes_values(void)
{
	return values;
}
static __always_inline __u64 fs_base(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return task->thread.fsbase;
}
static __always_inline const struct load_step *step_at(__u32 index)
{
	return bpf_map_lookup_elem(&load_steps, &index);
}
static __always_inline __u32 number_at(__u32 *found)
{
	return found ? *found : 0;
}
static __always_inline __u32 case_at(__u32 index)
{
	return number_at(bpf_map_lookup_elem(&load_cases, &index));
}
static __always_inline __u32 continuation(__u64 key)
{
	__u32 entry;

	if (key == NOWHERE)
		return 0;
	entry = find_entry(key); /* no index, if it is NOWHERE */
	return number_at(bpf_map_lookup_elem(&after, &entry));
}

#include "hit.h"

/* How long a hit waits, ns, and how often it looks meanwhile, at most. */
#define WAIT 1000000
#define LOOKS (1 << 16)

static long wait_for_change(__u32 i, __u64 *until)
{
	return !changing || bpf_ktime_get_ns() > *until;
}

/* count_unreported counts a hit that is not reported. While probes go in or out it waits for that,
 * for a while: hits that come a microsecond apart hinder each probe that does. */
static __noinline int count_unreported(struct registers *regs)
{
	__u32 cookie = bpf_get_attach_cookie(regs);
	__u64 *hits = bpf_map_lookup_elem(&site_hits, &cookie), now, until;

	count(METRIC_UNREPORTED);
	if (hits)
		__sync_fetch_and_add(hits, 1);
	if (changing && changing != CHANGING_ON + bpf_get_smp_processor_id()) {
		now = bpf_ktime_get_ns();
		until = now + WAIT < changing_until ? now + WAIT : changing_until;
		if (now < until)
			loop(LOOKS, wait_for_change, &until);
	}
	return 0;
}

/* Hits that are not timed between two that are. With one of these they are a prime number, so that
 * what comes at every so many hits is met as often as it comes. */
#define UNTIMED 60
/* ns: what took longer was interrupted. */
#define UNDISTURBED 50000

/* What is remembered of threads. Nearly every thread has a slot for itself, which is found for a
 * tenth of what task storage costs: that is for those whose slot another has. Slots are a power of
 * two: threads that follow each other have different ones. */
#define SLOTS 1024
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct thread);
} slots SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");
/* The states of threads that have slots. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* SLOTS, where values are taken */
	__type(key, __u32);
	__type(value, struct looking);
} state_slots SEC(".maps");

static __always_inline struct thread *slot_of(__u32 tid)
{
	__u32 slot = tid & (SLOTS - 1);

	return bpf_map_lookup_elem(&slots, &slot);
}
static __always_inline int is_of(const struct thread *slot, const struct task_struct *task)
{
	return slot->batch.tid == task->pid && slot->batch.started == task->start_boottime;
}

static __always_inline struct looking *looking_slot(const struct thread *t)
{
	__u32 slot = t->batch.tid & (SLOTS - 1);
	const struct thread *owner = bpf_map_lookup_elem(&slots, &slot);

	if (!owner || owner->batch.tid != t->batch.tid || owner->batch.started != t->batch.started)
		return 0; /* it is in task storage */
	return bpf_map_lookup_elem(&state_slots, &slot);
}

/* begin_thread gives a thread that has no slot one, or task storage. */
static __noinline struct thread *begin_thread(struct task_struct *task, struct thread *slot)
{
	struct thread *t = bpf_task_storage_get(&threads, (void *)task, 0, 0);

	if (t)
		return t;
	if (!__sync_val_compare_and_swap(&slot->batch.tid, 0, task->pid))
		t = slot;
	else if (!(t = bpf_task_storage_get(&threads, (void *)task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)))
		return 0;
	init_thread(t, task->pid, task->start_boottime, task->start_boottime < enabled_at);
	t->untimed = UNTIMED;
	return t;
}

/* thread_of finds what is remembered of a thread, if anything. */
static __always_inline struct thread *thread_of(struct task_struct *task)
{
	struct thread *slot = slot_of(task->pid);

	if (slot && is_of(slot, task))
		return slot;
	return bpf_task_storage_get(&threads, (void *)task, 0, 0);
}

/* stop_if_full stops the target where the ring is about to be full, and returns whether it is. */
static __always_inline int stop_if_full(void)
{
	int full = waiting_in(&ring) > stop_watermark;

	if (full)
		stop_process(target);
	return full;
}

/* Events of a batch that leave room for those of a hit, as a rule. */
#define NEARLY_FULL (BATCH_EVENTS - 8)

/* stop_after is for a thread that has been hit. It stops before the next hit, but not at once, and
 * many others may run meanwhile: while the ring is about to be full each keeps its own events. */
static __always_inline void stop_after(struct thread *t, __u64 records)
{
	/* Repeats count as hits, and are not in the batch. */
	int nearly = t->batch.count >= NEARLY_FULL && !t->repeats;

	if ((nearly || t->records != records) && !stop_if_full() && nearly)
		hand_over(t);
}

/* As Linux 6.19 and later have it. */
struct rseq_data___later {
	void *usrptr;
	__u32 len;
} __attribute__((preserve_access_index));
struct task_struct___later {
	struct rseq_data___later rseq;
} __attribute__((preserve_access_index));

/* What the kernel has written of an area since Linux 4.18, which did not keep its size. */
#define SEQUENCE_BYTES 32

/* sequence_of is the area of restartable sequences that a thread has; without an address: none. */
static __always_inline struct area sequence_of(struct task_struct *task)
{
	struct task_struct___later *later = (void *)task;
	struct area a = {};

	if (bpf_core_field_exists(later->rseq.usrptr)) {
		a.address = (__u64)later->rseq.usrptr;
		a.size = later->rseq.len;
	} else if (bpf_core_field_exists(task->rseq)) {
		a.address = (__u64)task->rseq;
		a.size = SEQUENCE_BYTES;
		if (bpf_core_field_exists(task->rseq_len))
			a.size = task->rseq_len;
	}
	return a;
}

/* note_sequence notes the area that a thread has, before a state is made that is read with what
 * lies there. */
static __always_inline void note_sequence(struct task_struct *task)
{
	struct area a;
	__u32 n;

	if (sequence_count >= SEQUENCES_MAX)
		return;
	a = sequence_of(task);
	if (!a.address)
		return;
#pragma unroll
	for (int i = 0; i < SEQUENCES_MAX; i++)
		if (sequences[i].address == a.address && sequences[i].size == a.size)
			return;
	n = __sync_fetch_and_add(&sequence_count, 1);
	if (n < SEQUENCES_MAX)
		sequences[n] = a;
}

/* take_values makes a state of a hit, before its event: what is handed over has the states of all
 * events. */
static __always_inline void take_values(
	struct task_struct *task, struct registers *regs, struct thread *t, __u32 cookie, int extra)
{
	__u32 index = extra ? cookie - EXTRA_COOKIES + extra_looks : cookie;
	struct look *l = bpf_map_lookup_elem(&looks, &index);

	if (!l) {
		count(METRIC_NO_SITE);
		return;
	}
	if (extra)
		count(METRIC_VALUE_HITS);
	note_sequence(task);
	look(regs, t, l, cookie, t->batch.hits + !extra);
}

SEC("uprobe.multi")
int hit(struct registers *regs)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (task->tgid != target)
		return 0;
	if (!enabled)
		return count_unreported(regs);
	struct thread *t = slot_of(task->pid);
	if (t && !is_of(t, task))
		t = begin_thread(task, t);
	if (!t) {
		count(METRIC_NO_STORAGE);
		return 0;
	}
	if (ends_behind(PART_THREAD))
		return 0;
	__u32 cookie = bpf_get_attach_cookie(regs);
	int extra = values && cookie >= EXTRA_COOKIES;
	struct site *s = bpf_map_lookup_elem(&sites, &cookie);
	if (!s && !extra) {
		count(METRIC_NO_SITE);
		return 0;
	}
	if (ends_behind(PART_SITE))
		return 0;
	__u64 records = t->records, began = 0;
	if (!t->untimed--) {
		t->untimed = UNTIMED;
		began = bpf_ktime_get_ns();
	}
	if (values)
		take_values(task, regs, t, cookie, extra);
	if (s && !extra)
		report(regs, t, s, cookie);
	if (began) {
		__u64 took = bpf_ktime_get_ns() - began;
		if (took < UNDISTURBED) {
			add(METRIC_TIMED_NS, took);
			count(METRIC_TIMED);
		}
	}
	if (stop_watermark)
		stop_after(t, records);
	return 0;
}

SEC("tp_btf/signal_generate")
int on_signal_generate(__u64 *args)
{
	struct task_struct *to = (void *)args[2];
	struct stop *s;

	if (to->tgid != target || !(s = stop_of(target)))
		return 0;
	if (args[0] == SIGCONT && holding && mapped != settled && (s->ours || s->other)) {
		/* What runs now may be a library that is not where we think. */
		enabled = 0;
		escaped = 1;
	}
	note_signal(s, args);
	return 0;
}

/* empty_probe is what a hit is compared with. */
SEC("uprobe.multi")
int empty_probe(struct registers *regs)
{
	return 0;
}

/* release_slot frees the slot, if it has one, of a thread that has handed over what was left of it.
 * Where drain is doing that it still looks at the slot. */
static __always_inline void release_slot(struct thread *t, int handed_over)
{
	if (handed_over && t == slot_of(t->batch.tid))
		t->batch.tid = 0;
}

/* end_unreadable ends a thread of which nobody can say where it has ended. */
static __always_inline void end_unreadable(struct thread *t)
{
	if (t)
		release_slot(t, send_rest(t, EVENT_END(ORIGIN_UNREADABLE, 0), 0));
}

static long end_unreadable_slot(__u32 slot, void *unused)
{
	struct thread *t = bpf_map_lookup_elem(&slots, &slot);

	if (t && t->batch.tid)
		end_unreadable(t);
	return 0;
}

/* begin_without_event is for a thread that is traced from its beginning and has had no event yet.
 */
static __always_inline struct thread *begin_without_event(struct task_struct *task)
{
	struct thread *slot = slot_of(task->pid);

	/* Without storage its events may be among those that are lost. */
	if (!slot || task->start_boottime < enabled_at || metrics[METRIC_NO_STORAGE])
		return 0;
	return begin_thread(task, slot);
}

/* SIGTRAP, which comes behind an instruction that has run. */
#define TRAP 5

/* Signals by which the kernel reports a fault, as numbers of bits. */
#define FAULTS (1ULL << 4 | 1ULL << TRAP | 1ULL << 7 | 1ULL << 8 | 1ULL << 11)

/* is_fault reports whether a signal is the kernel's, for what an instruction has done. */
static __always_inline int is_fault(__u64 signal, __u64 info)
{
	__s32 code = 0;

	bpf_probe_read_kernel(&code, 4, (void *)info + 8); /* si_code */
	return signal < 64 && FAULTS >> signal & 1 && code > 0;
}

/* A signal is about to be dealt with, by a handler perhaps. If that is external code nothing else
 * reports it. */
SEC("tp_btf/signal_deliver")
int on_signal_deliver(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct registers *regs = (void *)bpf_task_pt_regs((void *)task);
	__u64 handler = 0, pc = 0, sp;
	struct thread *t;
	int fault;

	if (task->tgid != target || !enabled)
		return 0;
	/* sa.sa_handler, the first of struct k_sigaction. */
	bpf_probe_read_kernel(&handler, 8, (void *)args[2]);
	bpf_probe_read_kernel(&pc, 8, &regs->REG_PC);
	pc = place(pc);
	fault = is_fault(args[0], args[1]);
	sp = register_value(regs, NUMBER_SP);
	t = thread_of(task);
	if (!t && (pc != NOWHERE ? handler > 1 : fault && called_from(sp) != NOWHERE))
		t = begin_without_event(task);
	if (!t)
		return 0;
	if (pc != NOWHERE) {
		fault = fault && args[0] != TRAP;
		if (handler > 1)
			take_signal(t, regs, pc, args[0], fault);
		else if (fault)
			t->faulted = pc;
		return 0;
	}
	if (handler > 1)
		note_handler(t, regs, args[0], task->blocked.sig[0]);
	else /* SIG_DFL, SIG_IGN */
		note_return(t, sp);
	if (fault)
		take_fault(t, sp);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct registers *regs = (void *)bpf_task_pt_regs((void *)task);
	struct ending e = {.known = enabled, .blocked = task->blocked.sig[0]};
	struct thread *t;

	if (note_end(task)) /* its probes go next, one after the other */
		enabled = 0;
	if (task->mm)
		ends_early = 1;
	if (task->tgid != target)
		return 0;
	if (task->pid == target && task->signal->live.counter) {
		__sync_lock_test_and_set(&headless, 1);
		if (clearing) /* the probes may go out of the process, too */
			enabled = 0;
	}
	bpf_probe_read_kernel(&e.pc, 8, &regs->REG_PC);
	bpf_probe_read_kernel(&e.call, 8, &regs->REG_SYSCALL);
	e.pc = place(e.pc);
	t = thread_of(task);
	/* In an exec that has failed it has the first thread's number and age. */
	if (!t && e.known && e.pc != NOWHERE && e.call != SYSCALL_EXECVE && e.call != SYSCALL_EXECVEAT)
		t = begin_without_event(task);
	if (t)
		release_slot(t, end_thread(t, regs, &e));
	else if (task->signal->nr_threads == 1) /* in an exec that has failed, the others are gone */
		loop(SLOTS, end_unreadable_slot, 0);
	if (task->signal->live.counter == 0)
		ended = ENDED | task->signal->group_exit_code;
	forget_stop(task);
	return 0;
}

/* Another program in the same process: its addresses are not ours. */
SEC("tp_btf/sched_process_exec")
int on_exec(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 before = args[1]; /* its number */
	struct thread *slot;

	if (task->tgid != target)
		return 0;
	enabled = 0;
	replaced = 1;
	slot = slot_of(before);
	if (slot && slot->batch.tid == before) {
		/* It has the first thread's number and age now. */
		end_unreadable(slot);
		return 0;
	}
	end_unreadable(bpf_task_storage_get(&threads, (void *)task, 0, 0));
	bpf_task_storage_delete(&threads, (void *)task);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(__u64 *args)
{
	struct task_struct *parent = (void *)args[0], *child = (void *)args[1];

	if (bpf_get_current_pid_tgid() >> 32 != target)
		return 0;
	if (child->tgid != target) {
		__sync_fetch_and_add(&forked, 1);
		if (child->mm != parent->mm)
			__sync_fetch_and_add(&copied, 1);
	} else if (enabled && stop_watermark) {
		/* threads that end before they have a batch full would never */
		stop_if_full();
	}
	return 0;
}

/* From linux/mman.h. */
enum { PROT_EXEC = 4, MAP_ANONYMOUS = 32 };

/* unmapped takes note that what lies there next is not the library, unless that is mapped anew. */
static __always_inline void unmapped(__u64 lo, __u64 size)
{
	for (__u32 i = 0; i < LIBRARIES_MAX; i++) {
		struct library *l = &libraries[i];
		if (l->size && lo <= l->bias + l->first && l->bias + l->first < lo + size)
			l->size = 0;
	}
}

/* A system call has been made. Code that it has mapped may be of a library that is to be traced:
 * none of it runs before that has been found out. */
SEC("tp_btf/sys_exit")
int on_sys_exit(__u64 *args)
{
	struct registers *regs = (void *)args[0];
	__s64 result = args[1];
	__u64 nr, prot = 0, flags = 0, address = result, size = 0;

	if (bpf_get_current_pid_tgid() >> 32 != target || replaced || result < 0)
		return 0;
	nr = regs->REG_SYSCALL;
	if (!shared || (nr != SYSCALL_MMAP && nr != SYSCALL_MUNMAP))
		return 0;
	if (nr == SYSCALL_MUNMAP)
		bpf_probe_read_kernel(&address, 8, &regs->REG_ARG1);
	bpf_probe_read_kernel(&size, 8, &regs->REG_ARG2);
	unmapped(address, size);
	if (nr == SYSCALL_MUNMAP)
		return 0;
	bpf_probe_read_kernel(&prot, 8, &regs->REG_ARG3);
	bpf_probe_read_kernel(&flags, 8, &regs->REG_ARG4);
	if (!(prot & PROT_EXEC) || flags & MAP_ANONYMOUS)
		return 0;
	__sync_fetch_and_add(&mapped, 1);
	if (holding)
		stop_process(target);
	return 0;
}

/* drain sends what the threads that still live have not sent; run when no probe stands any more.
 * Where one will stand again, they are met anew. */
SEC("iter/task")
int drain(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || task->tgid != target)
		return 0;
	struct thread *t = thread_of(task);
	if (!t)
		return 0;
	if (!send_rest(t, 0, 0))
		unsent++;
	reset_thread(t);
	return 0;
}
