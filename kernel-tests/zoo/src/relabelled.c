// A computed goto through a table in writable memory, which the program changes: a label comes in
// that other ways lead to as well, and two change places.
#include "checksum.h"

NOINLINE static unsigned run(const unsigned char *code, int turn)
{
	static void *table[4] = {&&add, &&triple, &&add, &&triple};
	unsigned x = 1;

	if (turn == 1)
		table[2] = &&flip;
	if (turn == 2) {
		void *first = table[0];
		table[0] = table[1];
		table[1] = first;
	}
	for (;; code++) {
		if (*code == 9)
			return x;
		if (*code == 4)
			goto flip;
		if (*code > 3) {
			x += 1000;
			continue;
		}
		goto *table[*code];
	add:
		x += 1;
		continue;
	triple:
		x *= 3;
		continue;
	flip:
		x ^= 5;
	}
}

int main(void)
{
	static const unsigned char code[] = {0, 1, 2, 0, 3, 1, 0, 7, 2, 4, 2, 1, 9};

	for (int turn = 0; turn < 4; turn++)
		mix(run(code, turn));
	report();
	return 0;
}
