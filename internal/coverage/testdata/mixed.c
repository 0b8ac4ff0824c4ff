#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static jmp_buf back;
static volatile sig_atomic_t caught;
static int choose(int n) {
	switch (n) {
	case 0: return 3;
	case 1: return 7;
	case 2: return n * 2;
	case 3: return n - 9;
	case 4: return n * n;
	case 5:
		n++;
		return 1;
	default:
		return -1;
	}
}
static void never(void) {
	puts("never");
	exit(3);
}
static void jumper(int n) {
	if (n > 3)
		longjmp(back, n);
	puts("no jump");
}
static void handler(int number) {
	caught += number;
	if (number == SIGUSR2)
		caught = 0;
}
static int compare(const void *a, const void *b) {
	int x = *(const int *)a, y = *(const int *)b;
	return x < y ? -1 : x > y;
}
static int sorted(void) {
	int list[] = {3, 1, 2, 9, 4};
	qsort(list, 5, sizeof *list, compare);
	for (int i = 1; i < 5; i++)
		if (list[i] < list[i - 1])
			return 0;
	return 1;
}
static int fold(const char *text) {
	int n = 0;
	while (*text) {
		if (*text == 'x') {
			text++;
			continue;
		}
		if (*text == 'q')
			break;
		do
			n += *text & 1;
		while (n % 5 == 4 && n++);
		text++;
	}
	return n;
}
#include "phases.h"
static int first(void) {
	int n = fold("hello, world");
	if (n > 100)
		never();
	return n + choose(0) + choose(2);
}
static int second(int argc) {
	int sum = 0;
	for (int i = 0; i < 300000; i++) {
		if (i % 3 == 0)
			sum += choose(i % 5);
		else if (i < 0)
			sum -= 2;
	}
	if (setjmp(back) == 0)
		jumper(argc + 4);
	else
		sum++;
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	sum += sorted();
	sum += fold("xxaxq");
	return sum;
}
int main(int argc, char **argv) {
	(void)argv;
	int n = first();
	phase();
	n += second(argc);
	printf("%d %d\n", n, (int)caught);
	return 0;
}
