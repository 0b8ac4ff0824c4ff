// A use after free, in the shape of curl's CVE-2021-22945: what could not be sent at once is kept in
// a buffer, which is given back when it has been sent, and is not forgotten. The next that is sent
// by this connection begins with that buffer, which another one has by then.
#include <stdio.h>

enum { BUFFERS = 4, SIZE = 16 };

struct buffer {
	struct buffer *next; // that is free
	char data[SIZE];
};

struct connection {
	struct buffer *left; // what is still to be sent
	unsigned sent;       // a sum of what has been
};

static struct buffer buffers[BUFFERS], *unused;

static struct buffer *take(void) {
	struct buffer *b = unused;
	unused = b->next;
	return b;
}

static void give(struct buffer *b) {
	b->next = unused;
	unused = b;
}

static void keep(struct connection *c, const char *text) {
	c->left = take();
	for (int i = 0; i < SIZE && (c->left->data[i] = text[i]) != 0; i++)
		;
}

static void put(struct connection *c, char byte) {
	c->sent = c->sent * 31 + byte; // symptom: what is sent is another's
}

static void flush(struct connection *c) {
	for (int i = 0; i < SIZE && c->left->data[i] != 0; i++)
		put(c, c->left->data[i]);
	give(c->left); // cause: c->left stays
}

int main(void) {
	static struct connection one, two;
	for (int i = 0; i < BUFFERS; i++)
		give(&buffers[i]);
	keep(&one, "hello");
	flush(&one);
	keep(&two, "pass=tr0ub4dor");
	if (one.left != NULL)
		flush(&one);
	printf("%08x\n", one.sent);
	return 0;
}
