// Keeps each value that fields of its structures take, and prints them at its end as "ROUTINE.NAME
// VALUE". No routine calls any of the library between them. For TestVariables.
#include <stdio.h>

enum color { red, green = 5, blue };

struct point {
	short x, y;
};

struct node {
	struct node *next;
	int key;
	unsigned level : 3;
	signed turn : 5;
	enum color color;
	_Bool seen;
	char letter;
	struct point at[2];
	union {
		float ratio;
		int bits;
	};
};

#define MOST 400
static struct {
	const char *name, *form;
	double value;
} notes[MOST];
static int noted;

static void note(const char *name, const char *form, double value) {
	if (noted == MOST)
		__builtin_trap();
	notes[noted].name = name;
	notes[noted].form = form;
	notes[noted++].value = value;
}

struct node *head;
struct point corner;
volatile int sink;

static inline __attribute__((always_inline)) int mixed(const struct node *m, int by) {
	int product = m->key * by;
	note("mixed.by", "%.0f", by);
	return product;
}

__attribute__((noinline)) int walk(struct node *p, int n) {
	int sum = 0;
	for (; p; p = p->next) {
		note("walk.p->key", "%.0f", p->key);
		note("walk.p->level", "0", 0);
		note("walk.p->turn", "0", 0);
		note("walk.p->at[1].y", "0", 0);
		note("walk.p->ratio", "%g", p->ratio);
		note("walk.p->color", "red", 0);
		note("walk.p->seen", "false", 0);
		note("walk.p->letter", "0", 0);
		p->level = p->level + n;
		note("walk.p->level", "%.0f", p->level);
		p->turn = p->turn - 3;
		note("walk.p->turn", "%.0f", p->turn);
		p->at[1].y = n + p->key;
		note("walk.p->at[1].y", "%.0f", p->at[1].y);
		p->ratio *= 2;
		note("walk.p->ratio", "%g", p->ratio);
		p->color = p->color == red ? green : blue;
		note("walk.p->color", p->color == green ? "green" : "blue", 0);
		p->seen = 1;
		note("walk.p->seen", "true", 0);
		p->letter = 'a' + p->key;
		note("walk.p->letter", p->key == 3 ? "100 'd'" : p->key == 7 ? "104 'h'" : "108 'l'", 0);
		corner.x = -p->key;
		note("corner.x", "%.0f", corner.x);
		sum += mixed(p, n);
	}
	return sum;
}

__attribute__((noinline)) int passed(int n) {
	note("passed.n", "%.0f", n);
	sink = n; // the last use of n: its register is free
	for (int i = 0; i < 3; i++)
		sink = i;
	return sink;
}

__attribute__((noinline)) void fill(int *a, int n) {
	for (int i = 0; i < n; i++) {
		a[i] = (i - 2) * i;
		if (i == 3)
			note("fill.a[3]", "%.0f", a[i]);
		if (i == 0)
			note("*fill.a", "%.0f", a[i]);
	}
}

__attribute__((noinline)) struct point turned(struct point of) {
	struct point by = {-of.y, of.x};
	note("turned.by.x", "%.0f", by.x);
	note("turned.of.y", "%.0f", of.y);
	return by;
}

int main(void) {
	static struct node list[3] = {{list + 1, 3}, {list + 2, 7}, {0, 11}};
	for (int i = 0; i < 3; i++)
		list[i].ratio = i + .5;
	head = list;
	note("corner.x", "0", 0);
	int a[8];
	fill(a, 8);
	struct point back = turned(turned((struct point){3, 4}));
	sink = back.x;
	int sum = walk(head, 4) + a[7] + passed(5) + passed(9);
	for (int i = 0; i < noted; i++) {
		char line[64];
		snprintf(line, sizeof line, notes[i].form, notes[i].value);
		printf("%s %s\n", notes[i].name, line);
	}
	return sum == 0;
}
