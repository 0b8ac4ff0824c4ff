/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What Go sees of the C of a hit. */
#ifndef WPPTRACE_USERMODE_HIT_H
#define WPPTRACE_USERMODE_HIT_H

#include <stddef.h>
#include <stdint.h>
#include "../types.h"

struct thread;

/* The machine that a call into C runs on: handle names it to the callbacks. */
struct machine {
	uintptr_t handle;
	__u64 base, size;
};

struct thread *usermode_thread(__u32 tid, __u64 started, int resync);
void usermode_hit(
	struct machine m, struct thread *t, struct registers *regs, const struct site *s, __u32 id);
void usermode_look(struct machine m, struct thread *t, struct registers *regs, const struct look *l,
	__u32 cookie, int extra);
void usermode_drain(struct machine m, struct thread *t);
void usermode_signal(
	struct machine m, struct thread *t, struct registers *regs, __u32 signal, __u64 blocked);
void usermode_faulted(struct machine m, struct thread *t, struct registers *regs);
void usermode_fault(struct machine m, struct thread *t, __u64 sp);
void usermode_exit(struct machine m, struct thread *t, struct registers *regs, __u64 blocked);
__u64 usermode_condition(__u8 code, __u64 flags);

/* A member of a shared structure; name "" is the whole. */
struct field {
	const char *structure, *name;
	size_t offset, size;
};
const struct field *usermode_fields(size_t *count);

static inline __u32 usermode_call_slot(__u64 address, __u32 shift)
{
	return call_slot(address, shift);
}
static inline __u64 usermode_hit_event(__u64 site, __u64 out, __u64 cfa)
{
	return EVENT_HIT(site, out, cfa);
}
static inline __u64 usermode_caller(__u64 kind, __u64 address)
{
	return EVENT_CALLER(kind, address);
}
static inline __u64 usermode_captured(__u64 value)
{
	return EVENT_CAPTURED(value);
}
static inline __u64 usermode_repeat(__u64 count)
{
	return EVENT_REPEAT(count);
}
static inline __u64 usermode_end(__u64 kind, __u64 address)
{
	return EVENT_END(kind, address);
}

#endif
