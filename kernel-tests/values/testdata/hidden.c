/* Loads whose addresses no program of a probe computes, a remainder being among what they are made
 * of, and what malloc has returned to one routine that returns it to another, far from any probe
 * of the plan. */
#include <stdio.h>
#include <stdlib.h>

struct node {
	struct node *next;
	long key, value;
};

static struct node *buckets[61];

long hidden_same(const long *key) {
	return *key;
}

long hidden_place(long key) {
	return (unsigned long)(hidden_same(&key) * 0x9e3779b97f4a7c15) % 61;
}

void *hidden_new(size_t size) {
	return malloc(size);
}

long hidden_first(long key) {
	struct node *n = buckets[hidden_place(key)];
	long sum = 0;
	if (n)
		sum = n->value + hidden_same(&n->key) - n->key + hidden_same(&n->value);
	return sum;
}

void hidden_add(long key) {
	struct node *n = hidden_new(sizeof *n);
	long a = hidden_same(&key), b = hidden_same(&a), c = hidden_same(&b), d = hidden_same(&c),
	     e = hidden_same(&d), f = hidden_same(&e);
	n->key = hidden_same(&f);
	n->value = hidden_same(&n->key) + a - b + c - d;
	long at = hidden_place(n->key);
	n->next = buckets[at];
	buckets[at] = n;
}

int main(void) {
	long sum = 0;
	for (long i = 0; i < 200; i++)
		hidden_add(i);
	for (long i = 0; i < 400; i++)
		sum += hidden_first(i);
	printf("%ld\n", sum);
	return 0;
}
