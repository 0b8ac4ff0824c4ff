// A return address is read for the sake of a profiler or an allocator. Where it is kept in the
// frame or in a register until it, or where it is in the frame, is an argument, it is not
// stored.

#include <stdlib.h>
void *held;
__attribute__((noinline)) void note(void *fn, void *site) {
	__asm__ volatile("" : : "r"(fn), "r"(site));
}
__attribute__((noinline)) long argument(long a) {
	note(argument, __builtin_return_address(0));
	return a * 3;
}
__attribute__((noinline)) long later(long a, long *p) {
	void *site = __builtin_return_address(0);
	*p = a;
	note(later, 0);
	p[1] = a * 5;
	note(later, site);
	return p[2] = a ^ 1;
}
__attribute__((noinline)) long keeps(long a) {
	void *site = __builtin_return_address(0);
	note(keeps, site);
	held = site;
	return a;
}
__attribute__((noinline)) long passes(long a, void **to) {
	void *volatile site = __builtin_return_address(0);
	note(passes, 0);
	*to = site;
	return a;
}
__attribute__((noinline)) long reuses(long a, void **p) {
	note(reuses, __builtin_return_address(0));
	held = *p;
	return a;
}
struct ctx { void *site; long more; };
__attribute__((noipa)) void keep(struct ctx *c) {
	held = c->site;
	__asm__ volatile("xor %%edi,%%edi\nxor %%eax,%%eax" : : : "rdi", "rax");
}
__attribute__((noinline)) long lends(long a) {
	struct ctx c;
	c.site = __builtin_return_address(0);
	c.more = a;
	keep(&c);
	return a;
}
__attribute__((noinline)) long tells(long a) {
	struct ctx c;
	c.site = __builtin_return_address(0);
	c.more = (long)__builtin_frame_address(0);
	keep(&c);
	return a;
}
__attribute__((noinline)) long points(long a) {
	struct ctx c;
	c.site = __builtin_return_address(0);
	c.more = (long)&c;
	keep(&c);
	return a;
}
__attribute__((noinline)) long shows(long a) {
	struct ctx c;
	c.site = __builtin_return_address(0);
	c.more = a;
	held = &c;
	keep(0);
	return a;
}
__attribute__((noinline)) long copies(long a, struct ctx *to) {
	struct ctx c;
	c.site = __builtin_return_address(0);
	c.more = a;
	__asm__("" : "+m"(c));
	*to = c;
	return a;
}
int main(int c, char **v) {
	long p[3];
	struct ctx x;
	return argument(c) + later(c, p) + keeps(c) + passes(c,
		&held) + lends(c) + tells(c) + points(c) + shows(c) + copies(c, &x) + reuses(c,
		(void **)v);
}
#define HOOK __attribute__((noinline, no_instrument_function)) void
HOOK __cyg_profile_func_enter(void *f, void *s) {
}
HOOK __cyg_profile_func_exit(void *f, void *s) {
}
