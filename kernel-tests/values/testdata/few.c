// Routines that code calls which is not traced, without a branch: one hit has to show all of each.
#include <stdio.h>
#include <stdlib.h>

struct node {
	long value;
	struct node *next;
};

static long many, seen;

__attribute__((noinline)) long leaf(long n, long k)
{
	return n * 3 + k;
}

__attribute__((noinline)) struct node *make(long value)
{
	struct node *x = malloc(sizeof *x);
	x->value = value;
	return x;
}

__attribute__((noinline)) struct node *count(long value)
{
	struct node *x = malloc(sizeof *x);
	seen += many;
	x->value = value + many;
	return x;
}

int main(void)
{
	struct node *first = NULL;
	long sum = 0;
	for (long i = 0; i < 100; i++) {
		struct node *x = i & 1 ? make(i) : count(leaf(i ^ sum, i));
		x->next = first;
		first = x;
		sum += many += i;
	}
	for (struct node *x = first; x != NULL; x = x->next)
		sum += x->value;
	printf("%ld\n", sum + seen);
	return 0;
}
