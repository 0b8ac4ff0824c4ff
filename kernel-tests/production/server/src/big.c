#include <stdio.h>
#include <stdlib.h>
#include "units.h"

/* One in ten calls goes anywhere, the others to some fifty routines of two units. */
static long work(long n) {
	long sum = 0;
	unsigned long x = (unsigned long)n * 2654435761u + 1;
	for (int i = 0; i < 2000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		unsigned long y = x >> 33;
		if (y % 10 == 0)
			sum += units[y / 10 % UNITS](y / 10 / UNITS, i);
		else
			sum += units[y % 2 * (UNITS - 1)](y / 16 % 25, sum);
	}
	return sum;
}

int main(void) {
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		printf("%ld\n", work(atol(line)));
		fflush(stdout);
	}
	return 0;
}
