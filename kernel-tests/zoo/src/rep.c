// Repeated string instructions: each counts once however often it repeats, also with a count of
// zero.
#include "checksum.h"

NOINLINE static void fill(char *p, int value, unsigned long n)
{
	__asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(value) : "memory");
}

NOINLINE static void copy(void *to, const void *from, unsigned long n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

NOINLINE static void copy_words(void *to, const void *from, unsigned long n)
{
	__asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

NOINLINE static unsigned long length(const char *s)
{
	unsigned long n = -1UL;
	__asm__ volatile("repne scasb" : "+D"(s), "+c"(n) : "a"(0) : "memory", "cc");
	return ~n - 1;
}

NOINLINE static int equal(const char *a, const char *b, unsigned long n)
{
	unsigned char same;
	__asm__ volatile("cmp %%al, %%al\n\trepe cmpsb\n\tsete %0" : "=q"(same), "+S"(a), "+D"(b), "+c"(n) : : "memory", "cc");
	return same;
}

NOINLINE static int counted_loop(unsigned long n)
{
	int r = 0;
	__asm__ volatile("1:\n\tadd $3, %0\n\tloop 1b" : "+r"(r), "+c"(n) : : "cc");
	return r;
}

NOINLINE static int jump_if_zero(unsigned long n)
{
	int r = 1;
	__asm__ volatile("jrcxz 1f\n\tadd $5, %0\n1:\n\tadd $2, %0" : "+r"(r), "+c"(n) : : "cc");
	return r;
}

int main(void)
{
	char a[256] = {0}, b[256] = {0};
	for (int i = 0; i < 20; i++) {
		fill(a, 'a' + i, i * 9);
		a[i * 9] = 0;
		copy(b, a, i * 9 + 1);
		copy_words(b + 8, a, i % 4);
		mix(length(a));
		mix(length(b + i));
		mix(equal(a, b, i * 9 + 1));
		mix(counted_loop(i + 1));
		mix(jump_if_zero(i % 3));
		if (i % 5 == 0)
			mix(b[i]);
	}
	report();
	return 0;
}
