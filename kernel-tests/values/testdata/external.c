// Calls the library between the uses of its variables, with the addresses of some of them. For
// TestStepVariablesInGDB and TestVariablesOnceSet.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { EMPTY, NUMBER, TEXT };

struct entry {
	struct entry *next;
	enum kind kind;
	long number;
	char name[16], text[24];
};

static struct entry *table;
static int entries;
volatile long sink;

__attribute__((noinline)) struct entry *find(const char *wanted) {
	struct entry *found = table;
	while (found && strcmp(found->name, wanted) != 0)
		found = found->next;
	return found;
}

__attribute__((noinline)) int set(const char *key, const char *value) {
	char *end;
	struct entry *e = find(key);
	if (!e) {
		e = calloc(1, sizeof *e);
		if (!e)
			return -1;
		snprintf(e->name, sizeof e->name, "%s", key);
		e->next = table;
		table = e;
		entries++;
	}
	long n = strtol(value, &end, 10);
	if (e->kind == TEXT)
		memset(e->text, 0, sizeof e->text);
	if (*end) {
		e->kind = TEXT;
		snprintf(e->text, sizeof e->text, "%s", value);
	} else {
		e->kind = NUMBER;
		e->number = n;
	}
	return e->kind;
}

static int larger(const void *left, const void *right) {
	long by = *(const long *)left - *(const long *)right;
	return by < 0 ? -1 : by > 0;
}

__attribute__((noinline)) long median(long scale) {
	long all[8], count = 0;
	for (struct entry *at = table; at && count < 8; at = at->next) {
		if (at->kind == NUMBER)
			all[count++] = at->number;
	}
	qsort(all, count, sizeof *all, larger);
	long middle = count ? all[count / 2] : -1;
	char line[32];
	int length = snprintf(line, sizeof line, "%ld", middle);
	sink = length;
	return middle * scale + length;
}

int main(void) {
	static const char *const keys[] = {"a", "b", "a", "c", "b"};
	static const char *const given[] = {"12", "x9", "blue", "-7", "31"};
	int done = 0, texts = 0;
	for (int turn = 0; turn < 5; turn++) {
		int kind = set(keys[turn], given[turn]);
		if (kind == TEXT)
			texts++;
		done++;
		sink = strlen(keys[turn]);
	}
	long result = median(3);
	sink = entries;
	return result != 95 || done != 5 || texts != 2;
}
