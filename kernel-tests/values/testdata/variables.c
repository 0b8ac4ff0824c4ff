// Prints each value that its variables take, as "ROUTINE.NAME VALUE", or "NAME VALUE" of a global
// one. For TestVariables.
#include <stdio.h>

struct node {
	struct node *next;
	signed char weight;
};

int total;
double mean;

__attribute__((noinline)) int fact(int n) {
	printf("fact.n %d\n", n);
	int below = n > 1 ? fact(n - 1) : 1;
	return n * below;
}

__attribute__((noinline)) double sum(const struct node *p) {
	static unsigned char calls = 250;
	printf("sum.calls %u\n", calls);
	calls++;
	printf("sum.calls %u\n", calls);
	double s = 0;
	printf("sum.s 0\n");
	for (; p; p = p->next) {
		printf("sum.p 0x%lx\n", (long)p);
		s += p->weight / 4.0;
		printf("sum.s %g\n", s);
		total += p->weight;
		printf("total %d\n", total);
	}
	printf("sum.p 0x0\n");
	return s;
}

__attribute__((noinline)) long spin(long rounds) {
	long product = 1;
	for (long i = 1; i <= rounds; i++)
		product *= -i;
	printf("spin.product 1\n");
	for (long i = 1, p = -1; i <= rounds; i++, p *= -i)
		printf("spin.product %ld\n", p);
	return product;
}

int main(void) {
	struct node list[4] = {{list + 1, 3}, {list + 2, -8}, {list + 3, 127}, {0, -128}};
	mean = sum(list) / 4;
	printf("mean %g\n", mean);
	total = fact(6) + spin(7);
	printf("total %d\n", total);
	return 0;
}
