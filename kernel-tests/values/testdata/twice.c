// A use after free, and a double free that the allocator does not find, for what it would know it by
// has been written over: a session that is dropped stays in the table.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 8 };

struct session {
	long number;
	char name[40];
};

static struct session *table[SESSIONS];

__attribute__((noinline)) static struct session *make(long number) {
	struct session *s = malloc(sizeof *s);
	if (s == NULL)
		exit(1);
	s->number = number;
	s->name[0] = 0;
	return s;
}

__attribute__((noinline)) static void drop(int i) {
	free(table[i]); // table[i] stays
}

__attribute__((noinline)) static void mark(int i, char c) {
	table[i]->name[0] = c;
}

__attribute__((noinline)) static long look(int i) {
	return table[i]->number;
}

int main(void) {
	long sum = 0;
	for (int i = 0; i < SESSIONS; i++)
		table[i] = make(i);
	for (int i = 0; i < SESSIONS; i += 2) {
		drop(i);
		table[i] = make(10 * i); // where the other was
		sum += look(i);
	}
	drop(3);
	drop(5);
	mark(5, 'x'); // use
	table[3] = make(33); // where that of 5 was
	mark(3, 'y');
	drop(3);
	for (int i = 0; i < SESSIONS; i++)
		mark(i, 'z'); // use, of 3 and 5
	drop(5); // again
	free(NULL);
	free(NULL);
	printf("%ld\n", sum & 1);
	return 0;
}
