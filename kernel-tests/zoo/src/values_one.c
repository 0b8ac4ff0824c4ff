// Values: integers of all sizes in registers and memory, structures, a list, a table that is
// sorted, bits, and routines that call each other. What begins with one_ calls no library.
#include <stdint.h>

#include "checksum.h"

struct node {
	struct node *next;
	int32_t key;
	uint16_t weight;
	int8_t sign;
	uint8_t flags;
};

static struct node nodes[32];
static int32_t table[24];
static uint64_t sums[4];

NOINLINE static uint32_t one_hash(const uint8_t *p, long n)
{
	uint32_t h = 2166136261u;
	for (long i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

NOINLINE static struct node *one_link(int n, uint32_t seed)
{
	struct node *head = 0;
	for (int i = 0; i < n; i++) {
		struct node *x = &nodes[i];
		seed = seed * 1103515245u + 12345u;
		x->key = (int32_t)(seed >> 8) % 1000;
		x->weight = seed >> 16;
		x->sign = (int8_t)seed;
		x->flags = seed & 1 ? 0x81 : x->sign < 0 ? 0x40 : 2;
		x->next = head;
		head = x;
	}
	return head;
}

NOINLINE static int64_t one_walk(const struct node *x)
{
	int64_t sum = 0;
	for (; x; x = x->next) {
		sum += (int64_t)x->key * x->weight;
		if (x->flags & 0x40)
			sum -= x->sign;
		else
			sum ^= x->flags;
	}
	return sum;
}

NOINLINE static int one_less(int32_t a, int32_t b)
{
	return a % 7 != b % 7 ? a % 7 < b % 7 : a < b;
}

NOINLINE static void one_sort(int32_t *t, int n)
{
	for (int i = 1; i < n; i++) {
		int32_t x = t[i];
		int k = i;
		for (; k > 0 && one_less(x, t[k - 1]); k--)
			t[k] = t[k - 1];
		t[k] = x;
	}
}

NOINLINE static unsigned one_depth(unsigned n)
{
	return n < 2 ? n : one_depth(n - 1) + one_depth(n - 2) * 3;
}

NOINLINE static uint64_t one_bits(uint64_t x)
{
	uint64_t y = (x << 13 | x >> 51) ^ ~x;
	sums[x & 3] += y;
	sums[(x >> 2) & 3] -= (int16_t)y;
	return -y + (y > 1000) - (int64_t)(x >> 63);
}

NOINLINE static void one_all(int n)
{
	struct node *list = one_link(n, 7);
	mix((unsigned)one_walk(list));
	for (int i = 0; i < 24; i++)
		table[i] = (i * 37) % 101 - 50;
	one_sort(table, 24);
	mix(one_hash((const uint8_t *)table, sizeof table));
	mix(one_depth(8));
	uint64_t x = 0x123456789abcdef1;
	for (int i = 0; i < 20; i++)
		x = one_bits(x);
	mix((unsigned)x);
}

int main(void)
{
	one_all(32);
	report();
	return 0;
}
