/* What functions of the C library that only read have returned follows from what they read, and
 * what was known before them is known after them; what others may write is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	const char *text;
	long length;
};

static char texts[64][12];
static struct word words[64], merged[64];
static struct word *volatile found;

/* as sorts do that have no jump on what they compare; memcmp's result, where bytes differ, is seen
 * in library_lengths alone */
void library_merge(const struct word *from, struct word *to, int n) {
	const struct word *left = from, *right = from + n / 2;
	for (int i = 0; i < n / 2; i++) {
		long a = left->length, b = right->length;
		long by = i & 1 ? strcmp(left->text, right->text)
				: memcmp(left->text + 4, right->text + 4, 1 + i % 8);
		long less = (by ? by : a - b) < 0;
		*to++ = *(less ? left : right);
		left += less;
		right += 1 - less;
	}
}

long noted;

__attribute__((noinline)) void library_note(int by) {
	noted = noted * 5 + by;
}

long library_lengths(char **list, int n) {
	long sum = 0;
	for (int i = 0; i < n; i++) {
		sum = sum * 3 + strlen(list[i]) + (strcmp(list[i], list[n - 1 - i]) > 0) +
		      (memchr(list[i], 'e', 4) != 0) - (strncmp(list[i], "wo", 2) == 0) +
		      memcmp(list[i], list[n - 1 - i], 4);
		library_note(memcmp(list[i] + 4, list[n - 1 - i] + 4, 1 + i % 8));
	}
	return sum;
}

/* its variables may be known elsewhere: functions that only read leave them as they are, that which
 * copies does not */
long library_leaves(int n) {
	long counts[4] = {n, n + 1, n + 2, n + 3}, other = 5;
	void *p = malloc(n % 40 + 1);
	other += counts[n & 3];
	free(p);
	other += counts[n & 3] + strlen(words[n & 63].text);
	memcpy(&counts[n & 3], &words[n & 63].length, sizeof(long));
	return other + counts[n & 3] + counts[n + 1 & 3];
}

int main(void) {
	long sum = 0;
	char *list[16];
	for (int i = 0; i < 64; i++) {
		snprintf(texts[i], sizeof texts[i], "word%d", i * 37 % 64);
		words[i] = (struct word){texts[i], strlen(texts[i])};
	}
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 16; j++)
			list[j] = texts[(i * 5 + j * 11) & 63];
		library_merge(words, merged, 64);
		sum += library_lengths(list, 16) + library_leaves(i) + merged[i % 30].length;
	}
	printf("%ld\n", sum);
	return 0;
}
