/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* What a hit sees of its thread: registers, and the memory that its load program reads. Package
 * loader/loads makes the programs, and runs them as this does. */
#ifndef WPPTRACE_STATES_H
#define WPPTRACE_STATES_H

#include "thread.h"

/* Words of a state besides those that were read: its header, 16 registers and the base of fs, and
 * the mask of failed reads. */
#define STATE_HEADER 2
#define STATE_REGISTERS 17
#define STATE_MOST                                                                                 \
	(STATE_HEADER + STATE_REGISTERS + 1 + (LOAD_FETCHES * LOAD_BYTES) / sizeof(__u64))

/* What a load program has stored: so many bytes. */
struct load_stored {
	__u64 address, value, size;
};

/* What is remembered of a thread of which values are taken. */
struct looking {
	/* batch.lost and handlers of the thread at its last hit. */
	__u64 lost, handlers;
	/* States that were handed over or lost. */
	__u64 sent;
	/* Traced code may be left behind the last state. */
	__u64 left;
	/* A signal's handler has come between the last state and the one before. */
	__u64 interrupted;

	/* The load program that runs: the index of its next step; 0: it has ended. */
	__u32 next;
	/* The first step of the one that follows; 0: none. */
	__u32 then;
	/* Fetches so far, and which of them failed, the first by the lowest bit. */
	__u64 fetches, failed;
	/* The words that fetches begin at. */
	__u64 places[LOAD_FETCHES];
	/* And the addresses. */
	__u64 addresses[LOAD_FETCHES];
	/* How many stores there were, and the last ones. */
	__u64 stored;
	struct load_stored stores[LOAD_STORES];
	__u64 cells[CELLS];

	/* Words of states, and of the one that is being made. */
	__u64 count, words;
	struct states states;
	/* A fetch begins in states, which is all that the verifier knows of it. */
	__u64 beyond[STATE_REGISTERS];
};

/* looking_of is what is remembered of a thread, which begins if there is nothing yet; 0: it has no
 * memory for that. */
static __always_inline struct looking *looking_of(struct thread *t)
{
	struct looking *v = looking_slot(t);

	if (!v || (v->states.tid == t->batch.tid && v->states.started == t->batch.started))
		return v;
	v->states.tid = t->batch.tid;
	v->states.started = t->batch.started;
	v->states.sequence = v->states.hits = v->states.lost = v->sent = v->count = v->handlers = 0;
	return v;
}

static __always_inline void send_states(struct thread *t, struct looking *v)
{
	__u64 n = v->count, had = v->states.hits - v->sent;

	if (!n)
		return;
	v->states.count = STATES | n;
	if (send_record(t, &v->states, n, STATE_WORDS)) {
		add(METRIC_LOST_STATES, had);
		v->states.lost += had;
	}
	v->sent = v->states.hits;
	v->states.sequence++;
	v->count = 0;
}

static __always_inline void hand_over_states(struct thread *t)
{
	struct looking *v;

	if (takes_values() && (v = looking_of(t)))
		send_states(t, v);
}

static __always_inline __u64 cell(const struct looking *v, __u64 number)
{
	bound_index(number, CELLS);
	return v->cells[number];
}

static __always_inline void set_cell(struct looking *v, __u64 number, __u64 value)
{
	bound_index(number, CELLS);
	v->cells[number] = value;
}

/* size_of is what a step says of size, or less: bytes of a number. */
static __always_inline __u64 size_of(const struct load_step *s)
{
	return s->size < 1 || s->size > 8 ? 8 : s->size;
}

/* extend is the low size bytes of a number, with their sign. */
static __always_inline __u64 extend(__u64 x, __u64 size, int sign)
{
	__u64 above = 64 - 8 * size;

	x <<= above & 63;
	return sign ? (__u64)((__s64)x >> (above & 63)) : x >> (above & 63);
}

/* holds reports whether the condition of a branch does. */
static __always_inline __u64 holds(const struct load_step *s, __u64 x, __u64 y)
{
	__u64 size = size_of(s), top = (8 * size - 1) & 63, result, carry, overflow;

	x = extend(x, size, 0);
	y = extend(y, size, 0);
	result = s->sign ? x & y : extend(x - y, size, 0);
	carry = s->sign ? 0 : x < y;
	overflow = s->sign ? 0 : ((x ^ y) & (x ^ result)) >> top & 1;
	return condition(
		s->condition & 15, carry | (__u64)!result << 6 | result >> top << 7 | overflow << 11);
}

static __always_inline __u64 compute(const struct load_step *s, __u64 x, __u64 y)
{
	__u64 size = size_of(s), bits = size == 8 ? 63 : 31;

	switch (s->op) {
	case LOAD_SUM:
		x += y;
		break;
	case LOAD_AND:
		x &= y;
		break;
	case LOAD_OR:
		x |= y;
		break;
	case LOAD_XOR:
		x ^= y;
		break;
	case LOAD_SHIFT_LEFT:
		x <<= y & bits;
		break;
	case LOAD_SHIFT_RIGHT:
		x = extend(x, size, 0) >> (y & bits);
		break;
	case LOAD_SHIFT_RIGHT_SIGNED:
		x = (__s64)extend(x, size, 1) >> (y & bits);
		break;
	case LOAD_SUBTRACT:
		x -= y;
		break;
	case LOAD_MULTIPLY:
		x *= y;
		break;
	}
	return extend(x, size, s->op == LOAD_EXTEND && s->sign);
}

/* word is one that was fetched for the state that is being made. */
static __always_inline __u64 word(const struct looking *v, __u64 at)
{
	bound_index(at, STATE_WORDS);
	return v->states.words[at];
}

/* pick is bytes of what was fetched, or of what has been stored there since. */
static __always_inline __u64 pick(const struct looking *v, const struct load_step *s)
{
	__u64 place = s->a, byte = s->imm & (LOAD_BYTES - 1), at, x;

	bound_index(place, LOAD_FETCHES);
#pragma GCC unroll 4
	for (__u64 i = 0; i < LOAD_STORES; i++) {
		if (i >= v->stored)
			break;
		at = (v->stored - 1 - i) & (LOAD_STORES - 1);
		x = v->addresses[place] + byte - v->stores[at].address;
		if (x < v->stores[at].size && x + size_of(s) <= v->stores[at].size)
			return extend(v->stores[at].value >> (8 * x & 63), size_of(s), s->sign);
	}
	at = v->places[place] + (byte >> 3);
	byte &= 7;
	x = word(v, at) >> (8 * byte);
	if (byte)
		x |= word(v, at + 1) << (64 - 8 * byte);
	return extend(x, size_of(s), s->sign);
}

/* fetch reads memory into the state. It returns 1 if that may have no more of it. */
static __always_inline long fetch(struct looking *v, const struct load_step *s, __u64 address)
{
	__u64 place = s->dst, at = v->words, size = s->size, last;

	if (v->fetches >= LOAD_FETCHES) {
		v->left = 1;
		return 1;
	}
	bound_index(place, LOAD_FETCHES);
	bound_index(at, STATE_WORDS);
	asm volatile("" : "+r"(size)); /* one register, of which the verifier learns the bounds */
	if (size < 1 || size > LOAD_BYTES)
		size = 8;
	last = at + ((size - 1) >> 3);
	bound_index(last, STATE_WORDS);
	v->states.words[last] = 0;
	if (read_user(&v->states.words[at], size, address))
		v->failed |= 1ULL << v->fetches;
	v->places[place] = at;
	v->addresses[place] = address;
	v->fetches++;
	v->words = last + 1;
	return 0;
}

static __always_inline void store(struct looking *v, const struct load_step *s, __u64 address)
{
	__u64 at = v->stored & (LOAD_STORES - 1);

	v->stores[at].address = address;
	v->stores[at].value = cell(v, s->b);
	v->stores[at].size = size_of(s);
	v->stored++;
}

/* choose is the case of a switch, or 0. */
static __always_inline __u32 choose(const struct load_step *s, __u64 index)
{
	index = extend(index, size_of(s), 0);
	return index < case_at(s->jump) ? case_at(s->jump + 1 + index) : 0;
}

/* end_program goes on with the next program, and returns whether there is none. */
static __always_inline long end_program(struct looking *v)
{
	v->next = v->then;
	v->then = 0;
	return !v->next;
}

struct running {
	struct looking *v;
};

/* run_step runs one step, and returns whether it was the last. */
static long run_step(__u32 i, struct running *r)
{
	struct looking *v = r->v;
	const struct load_step *s = step_at(v->next);
	__u64 x, y;
	__u32 to;

	if (!s)
		return end_program(v);
	v->next++;
	x = cell(v, s->a);
	y = (cell(v, s->b) << (s->scale & 3)) + (__s64)s->imm;
	switch (s->op) {
	case LOAD_FETCH:
		if (fetch(v, s, x + y))
			return end_program(v);
		break;
	case LOAD_PICK:
		set_cell(v, s->dst, pick(v, s));
		break;
	case LOAD_END:
		return end_program(v);
	case LOAD_BRANCH:
		if (!holds(s, x, y))
			return 0;
		break;
	case LOAD_SWITCH:
		to = choose(s, x + y);
		if (to)
			v->next = to;
		return 0;
	case LOAD_RETURN:
		v->next = continuation(place(x));
		v->left |= !v->next;
		return v->next ? 0 : end_program(v);
	case LOAD_LEAVE:
		v->left = 1;
		break;
	case LOAD_STORE:
		store(v, s, x + (__s64)s->imm);
		break;
	default:
		set_cell(v, s->dst, compute(s, x, y));
	}
	v->next += s->jump;
	return v->next ? 0 : end_program(v);
}

/* hash_registers is a hash of the registers in the cells, as package wire has it. */
static __always_inline __u64 hash_registers(const struct looking *v)
{
	__u64 even = 0, odd = 0;

#pragma GCC unroll 8
	for (int i = 0; i < 16; i += 2) {
		even = (even ^ v->cells[i]) * 0x9e3779b97f4a7c15ULL;
		even ^= even >> 29;
		odd = (odd ^ v->cells[i + 1]) * 0xc2b2ae3d27d4eb4fULL;
		odd ^= odd >> 31;
	}
	even ^= odd;
	return (__u32)(even ^ even >> 32);
}

/* state_flags are CF PF AF ZF SF OF DF from bit 0 on. */
static __always_inline __u64 state_flags(__u64 flags)
{
	return (flags & 1) | (flags >> 1 & 2) | (flags >> 2 & 4) | (flags >> 3 & 8) |
		(flags >> 3 & 16) | (flags >> 6 & 32) | (flags >> 4 & 64);
}

/* begin_state puts the words of a state that come before what is read, and returns whether it is
 * whole. */
static __always_inline __u64 begin_state(struct thread *t, struct looking *v)
{
	__u64 at, whole;

	if (v->count + STATE_MOST > STATE_WORDS)
		send_states(t, v);
	v->interrupted = v->handlers != t->handlers;
	whole = !v->count || v->left || v->lost != t->batch.lost || v->interrupted;
	v->lost = t->batch.lost;
	v->handlers = t->handlers;
	v->words = v->count + STATE_HEADER;
	if (whole) {
		at = v->words;
		bound_index(at, STATE_WORDS);
#pragma GCC unroll 17
		for (int i = 0; i < 16; i++)
			v->states.words[at + i] = v->cells[i];
		v->states.words[at + 16] = v->cells[CELL_FS_BASE];
		v->words = at + STATE_REGISTERS;
	}
	return whole;
}

/* put_state makes a state of what the cells hold. id is the second word of its header. */
__noinline int put_state(
	struct thread *t, struct looking *v, const struct look *l, __u64 id, __u64 flags)
{
	__u64 out, whole, at, read, hash;
	struct running r = {v};

	if (!takes_values() || !t || !v || !l)
		return 0;
	out = l->condition < CONDITION_NONE ? condition(l->condition, flags) : 0;
	whole = begin_state(t, v);
	hash = hash_registers(v); /* programs may write the cells of registers */
	v->fetches = v->failed = v->left = v->stored = 0;
	v->cells[NO_CELL] = 0;
	read = v->words;
	v->next = l->first[out & 1];
	v->then = 0;
	if (l->behind && whole && !v->interrupted) {
		v->then = v->next;
		v->next = l->behind;
	}
	if (v->next)
		loop(LOAD_STEPS, run_step, &r);
	v->left |= !!v->next; /* it has not come to its end */
	v->left |= l->flags >> (out & 1) & LOOK_LEAVES;
	read = v->words - read;
	if (v->failed) {
		at = v->words++;
		bound_index(at, STATE_WORDS);
		v->states.words[at] = v->failed;
	}
	at = v->count;
	bound_index(at, STATE_WORDS);
	v->states.words[at] = hash | read << 32 | state_flags(flags) << 40 | out << 47 | whole << 48 |
		(__u64) !!v->failed << 49 | v->left << 50 | v->interrupted << 51;
	v->states.words[at + 1] = id;
	v->count = v->words;
	v->states.hits++;
	v->left |= !!v->failed; /* what was loaded there, registers show */
	return 0;
}

/* look makes a state of a hit that is the thread's with this number, or comes behind that one. */
static __always_inline void look(
	struct registers *regs, struct thread *t, const struct look *l, __u32 cookie, __u64 ordinal)
{
	struct looking *v = looking_of(t);

	if (!v) {
		count(METRIC_NO_STATES);
		return;
	}
#define TAKE_REGISTER(n, name) v->cells[n] = *(volatile __u64 *)&regs->name;
	EACH_REGISTER(TAKE_REGISTER)
	v->cells[CELL_BIAS] = bias_of(l->library);
	v->cells[CELL_FS_BASE] = fs_base();
	put_state(t, v, l, cookie | ordinal << 18, *(volatile __u64 *)&regs->REG_FLAGS);
}

#endif
