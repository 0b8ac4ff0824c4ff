// exec of the same file, twice, with other arguments: the program's own instructions before each
// exec count.
#include <stdlib.h>
#include <unistd.h>

#include "checksum.h"

NOINLINE static int work(int n)
{
	for (int i = 0; i < n * 3; i++)
		mix(i % 4 ? i : n);
	return n;
}

int main(int argc, char **argv)
{
	int stage = argc > 1 ? atoi(argv[1]) : 2;
	work(stage + 5);
	if (stage > 0) {
		char next[] = {(char)('0' + stage - 1), 0};
		execl("/proc/self/exe", argv[0], next, (char *)0);
		return 99;
	}
	report();
	return 5;
}
