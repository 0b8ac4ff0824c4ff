// Addresses that follow from numbers whose bytes are in the other order, as in files and packets.
#include <stdio.h>
#include <string.h>

static unsigned char page[1 << 12];

static unsigned long __attribute__((noinline)) walk(const unsigned char *at, int n) {
	unsigned long sum = 0;
	for (int i = 0; i < n; i++) {
		unsigned short near;
		memcpy(&near, at + 2 * i, 2);
		near = near << 8 | near >> 8;
		const unsigned char *cell = at + near;
		unsigned far = (unsigned)cell[0] << 24 | cell[1] << 16 | cell[2] << 8 | cell[3];
		sum = sum * 31 + at[far & 0xfff];
	}
	return sum;
}

int main(void) {
	unsigned x = 1;
	for (int i = 0; i < 4096; i++)
		page[i] = (x = x * 1103515245 + 12345) >> 16;
	for (int i = 0; i < 200; i += 2)
		page[i] &= 7;
	printf("%lx\n", walk(page, 100));
	return 0;
}
