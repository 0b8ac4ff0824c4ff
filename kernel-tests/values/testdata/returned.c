/* What functions of the C library have returned is known by what comes of it: a sum, or a value
 * that is moved if it is not zero. */
#include <stdio.h>
#include <string.h>

static const char *names[] = {"one", "two", "three", "four", "one", "five and more"};
static long total = 11;

long returned_sum(int round) {
	long sum = round;
	for (int i = 0; i < 6; i++) {
		sum += round * 3 + strlen(names[i]);
		if (strcmp(names[i], "one") == 0)
			sum ^= 5;
	}
	return sum;
}

void returned_add(int n) {
	static long cells[8];
	cells[n & 7] += n;
	total += cells[n & 7];
}

int main(void) {
	long sum = 0;
	for (int i = 0; i < 100; i++) {
		sum += returned_sum(i);
		returned_add(i);
	}
	printf("%ld %ld\n", sum, total);
	return 0;
}
