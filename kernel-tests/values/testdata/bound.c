/* A library whose routines call each other by stubs, as it exports them; with MAIN, a program that
 * calls it; with BETWEEN, a library that comes between, changes what is passed, and goes on. */
int bound_add(int *to, int n);
int bound_sum(int n);

#ifdef MAIN
#include <stdio.h>

int main(void) {
	int sum = 0;
	for (int i = 0; i < 300; i++)
		sum += bound_sum(i % 7);
	printf("%d\n", sum);
	return 0;
}
#elif defined BETWEEN
#define _GNU_SOURCE
#include <dlfcn.h>

int bound_add(int *to, int n) {
	static int (*next)(int *, int);
	if (!next)
		next = (int (*)(int *, int))dlsym(RTLD_NEXT, "bound_add");
	to[1] += 3;
	return next(to, n);
}
#else
static int cells[4] = {1, 2, 3, 4};

int bound_add(int *to, int n) {
	int was = to[1];
	to[0] += n;
	return was * 5 + to[0];
}

int bound_sum(int n) {
	int sum = cells[3];
	for (int i = 0; i < n; i++) {
		cells[1] = cells[2] + i;
		cells[3] ^= bound_add(cells, i) + cells[1];
		sum += cells[3] + cells[1];
	}
	return sum;
}
#endif
