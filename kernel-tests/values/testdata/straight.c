// Straight code that loads from more places than a hit reads, and calls in between: a checksum by a
// table, as crc32 is, of 16 bytes at a time.
#include <stdio.h>

static unsigned table[256], sum = 1;

static void __attribute__((noinline)) take(unsigned char byte) {
	sum = sum >> 8 ^ table[(sum ^ byte) & 255];
}

static void __attribute__((noinline)) block(unsigned long a, unsigned long b) {
	take(a);
	take(a >> 8);
	take(a >> 16);
	take(a >> 24);
	take(a >> 32);
	take(a >> 40);
	take(a >> 48);
	take(a >> 56);
	take(b);
	take(b >> 8);
	take(b >> 16);
	take(b >> 24);
	take(b >> 32);
	take(b >> 40);
	take(b >> 48);
	take(b >> 56);
}

int main(void) {
	for (unsigned i = 0; i < 256; i++) {
		unsigned c = i;
		for (int k = 0; k < 8; k++)
			c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
		table[i] = c;
	}
	for (unsigned long i = 0; i < 30; i++)
		block(i * 0x9e3779b97f4a7c15, i);
	printf("%x\n", sum);
	return 0;
}
