/* Dies where a list has an item that is none, of SIGSEGV; before, a handler mends another one. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

struct item {
	struct item *next;
	long number;
};

static sigjmp_buf back;
static struct item items[3];

static void mend(int signal) { siglongjmp(back, signal); }

__attribute__((noinline)) long sum(struct item *x) {
	long sum = 0;
	for (; x; x = x->next)
		sum += x->number; // fault
	return sum;
}

__attribute__((noinline)) void link_items(void) {
	items[0].next = &items[1];
	items[1].next = (struct item *)0xb; // cause
}

int main(void) {
	link_items();
	signal(SIGSEGV, mend);
	if (!sigsetjmp(back, 1))
		sum(items);
	signal(SIGSEGV, SIG_DFL);
	return (int)sum(items);
}
