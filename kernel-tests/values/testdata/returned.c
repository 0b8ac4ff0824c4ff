/* What functions of the C library have returned is known by what comes of it: a sum, a value that
 * is moved if it is not zero, or where it is stored, though it be stored through. */
#include <stdio.h>
#include <stdlib.h>
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

struct cell {
	long key, times;
};

void returned_cell(int key) {
	char text[32];
	struct cell *cell = calloc(1, sizeof *cell);
	cell->key = key;
	cell->times = 1;
	snprintf(text, sizeof text, "cell %d", key);
	free(cell);
}

int main(void) {
	long sum = 0;
	for (int i = 0; i < 100; i++) {
		sum += returned_sum(i);
		returned_cell(i);
		returned_add(i);
	}
	printf("%ld %ld\n", sum, total);
	return 0;
}
