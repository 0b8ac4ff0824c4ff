// Jumps to what a variable was given: to one of these labels, or to any of the routine where a
// call may have changed it; and through a table that may be written.

#include <stdio.h>
#define F __attribute__((noinline,noclone))
volatile int sink, zero;
F int note(int x) {
	sink += x;
	return sink;
}
F int variable(unsigned n) {
	void *state = &&even;
	int r = 0;
	for (; n; n--) {
		goto *state;
	even: r += n; state = r & 4 ? &&odd : &&even; sink++; continue;
	odd: r ^= n << 3; state = n % 3 ? &&third : &&even; continue;
	third: r -= 7; state = &&even;
	}
	return r;
}
F long machine(const char *s) {
	void *state = &&begins;
	long v = 0;
	for (; *s; s++) {
		goto *state;
	begins: if (*s == 'a') state = &&in_a; else if (*s == 'b') state = &&in_b; v += 1; continue;
	in_a: if (*s == 'b') state = &&in_b; else state = &&begins; v += 10; continue;
	in_b: state = *s == 'c' ? &&ends : &&in_a; v += 100; continue;
	ends: v += 1000; state = &&begins;
	}
	return v;
}
void *other;
F void change(void **p) {
	if (sink & 1) *p = other;
}
F int changed(unsigned n) {
	void *state = &&even;
	int r = 0;
	other = &&odd;
	for (; n; n--) {
		change(&state);
		goto *state;
	even: r += n; state = &&odd; continue;
	odd: r ^= n << 3; state = &&even;
	}
	return r;
}
F int rewritten(const unsigned char *p, int turn) {
	static void *table[4] = {&&one, &&two, &&one, &&two};
	int r = 0;
	if (turn) table[2] = &&three;
	for (; *p != 9; p++) {
		if (*p == 4) goto three;
		if (*p > 3) {
			r += 1000;
			continue;
		}
		goto *table[*p];
	one: r += 1; continue;
	two: r *= 3; continue;
	three: r ^= 5;
	}
	return r;
}
int main(int c, char **v) {
	printf("%d\\n", variable(40) + (int)machine("abcabb") + changed(2) + rewritten((unsigned char
		*)"\\1\\2\\4\\9", c));
	return 0;
}
