// A program that closes its standard output and input and works on; its report goes to standard
// error.
#include <stdio.h>
#include <unistd.h>

#include "checksum.h"

NOINLINE static int fill(char *buffer, int n)
{
	for (int i = 0; i < n; i++)
		buffer[i] = (char)(i % 26 + 'a');
	return n;
}

int main(void)
{
	char buffer[32];
	close(0);
	fclose(stdout);
	for (int i = 0; i < 5; i++) {
		if (read(0, buffer, sizeof buffer) < 0)
			mix(i);
		if (write(1, buffer, fill(buffer, 10 + i)) < 0)
			mix(buffer[i + 3]);
	}
	fprintf(stderr, "%08x\n", checksum);
	return 3;
}
