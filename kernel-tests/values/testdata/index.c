// An index that leaves its array, in the shape of bzip2's CVE-2019-12900: a block says how many
// selectors it has, nobody compares that with how many there is room for, and those that are too
// many overwrite what lies behind the array.
#include <stdio.h>

enum { MOST_SELECTORS = 24 };

struct block {
	unsigned char selector[MOST_SELECTORS];
	unsigned tables; // 2 to 6
	unsigned checksum;
};

struct input {
	const unsigned char *at;
	unsigned have, bits;
};

static unsigned bit(struct input *in) {
	if (in->have == 0) {
		in->bits = *in->at++;
		in->have = 8;
	}
	return in->bits >> --in->have & 1;
}

static unsigned number(struct input *in, int bits) {
	unsigned n = 0;
	while (bits-- > 0)
		n = n << 1 | bit(in);
	return n;
}

static __attribute__((noinline)) void header(struct block *b, struct input *in) {
	b->tables = number(in, 3);
	unsigned selectors = number(in, 15);
	for (unsigned i = 0; i < selectors; i++) {
		unsigned char j = 0;
		while (bit(in))
			j++;
		b->selector[i] = j; // cause: i may be MOST_SELECTORS and more
	}
}

static void decode(struct block *b) {
	b->checksum = 0;
	for (unsigned i = 0; i < MOST_SELECTORS; i++)
		b->checksum = b->checksum * 31 + b->selector[i];
	if (b->tables > 6) // symptom: there are many thousands of tables
		printf("a block of %u tables?\n", b->tables);
}

int main(void) {
	// 3 tables, 28 selectors
	static const unsigned char block[] = { 0x60, 0x07, 0x36, 0xdb, 0x6d, 0xb6, 0xdb, 0x6d, 0xb6,
		0xdb, 0x6d, 0xb6, 0xd8 };
	struct input in = { .at = block };
	struct block b;
	header(&b, &in);
	decode(&b);
	return 0;
}
