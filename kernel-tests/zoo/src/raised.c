// Signals raised in external code that others have jumped to: what led there has
// run before the handler.
#include <signal.h>

#include "checksum.h"

static void handler(int sig)
{
	mix(sig);
	if (checksum & 1)
		mix(7);
}

// Without unwind information, so that it is not traced.
void raises(unsigned x);
__asm__(".pushsection .text\n.type raises, @function\n"
	"raises: sub $8, %rsp\n mov $10, %edi\n call raise@PLT\n add $8, %rsp\n ret\n"
	".size raises, . - raises\n.popsection\n");

NOINLINE static void jumps(unsigned x)
{
	for (unsigned i = 0; i < x % 5; i++)
		mix(i);
	raises(x);
}

// One path, and no event before the jump.
NOINLINE static void straight(unsigned x)
{
	mix(x);
	raises(x);
}

NOINLINE static void calls(unsigned x)
{
	mix(x ^ 5);
	raises(x);
	mix(x + 3);
}

static void (*volatile uses[])(unsigned) = {straight, calls, jumps};

NOINLINE static unsigned by_pointer(unsigned x)
{
	if (x & 4)
		mix(x);
	uses[x % 3](x);
	return checksum;
}

NOINLINE static unsigned directly(unsigned x)
{
	if (x & 1)
		straight(x);
	else
		jumps(x);
	return checksum & 15;
}

NOINLINE static unsigned work(unsigned x)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < 160; i++)
		sum += i % (x | 1) ? i : sum >> 1;
	return sum;
}

int main(void)
{
	signal(SIGUSR1, handler);
	for (unsigned i = 0; i < 20; i++) {
		mix(by_pointer(i));
		mix(directly(i));
		mix(work(i));
	}
	report();
	return 2;
}
