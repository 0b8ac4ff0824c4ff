// All the forms of switches and computed gotos that compilers make tables of. It calls each
// with indices within its table and beyond.

#define NEXT goto *labels[*pc++]
#define HOP goto *(&&a + labels[*pc++])
#include <stdio.h>
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) int note(int x) {
	sink += x;
	return sink;
}
#define CASES(b) \
	case b: return 5; \
	case b+1: return note(1); \
	case b+2: return note(2)*2; \
	case b+3: return 7*note(3); \
	case b+4: return note(4)^9; \
	case b+5: return note(5)-3; \
	case b+6: return 3; \
	case b+7: return note(7)*2;
#define F __attribute__((noinline,noclone))
F int dense(int x) {
	switch (x) {
		CASES(0)
	}
	return -1;
}
F int biased(int x) {
	switch (x) {
		CASES(100)
	}
	return -1;
}
F int negative(long x) {
	switch (x) {
		CASES(-4)
	}
	return -1;
}
F int masked(unsigned x) {
	switch (x & 7) {
		CASES(0)
	}
	return -1;
}
F int shifted(unsigned x) {
	switch (x >> 29) {
		CASES(0)
	}
	return -1;
}
F int longs(long x) {
	switch (x) {
		CASES(0)
	}
	return -1;
}
F int byteSized(unsigned char x) {
	switch (x) {
		CASES(40)
	}
	return -1;
}
F int shorts(short *p) {
	switch (*p) {
		CASES(0)
	}
	return -1;
}
F int memory(int *p) {
	switch (*p) {
		CASES(0)
	}
	return -1;
}
F int noDefault(int x) {
	switch (x) {
		CASES(0) default: __builtin_unreachable();
	}
}
F int nested(int x, int y) {
	switch (x) {
	case 0: return 5;
	case 1: return note(8);
	case 2: switch (y) {
			CASES(0)
		}
		return -2;
	case 3: return 7 * note(3);
	case 4: return note(9);
	case 5: return note(6);
	case 6: return 4;
	case 7: return note(5) * 2;
	}
	return -1;
}
F int sparse(int x) {
	switch (x) {
	case 1: return note(9);
	case 10: return note(2); CASES(20) case 40: return note(7);
	case 1000: return 4;
	case 1001: return note(3);
	case 1002: return note(2);
	case 1003: return note(1);
	case 1004: return note(8);
	case 1005: return note(12);
	}
	return 0;
}
F int unsignedText(unsigned char *s) {
	int n = 0;
	while (*s) switch (*s++) {
	case 'a': n += note(1); break;
	case 'b': n += note(2); break;
	case 'c': n *= note(3); break;
	case 'd': n -= note(4); break;
	case 'e': n ^= note(5); break;
	case 'z': return n;
	default: n++;
	}
	return n;
}
F int signedText(char *s) {
	int n = 0;
	while (*s) switch (*s++) {
	case 'a': n += note(1); break;
	case 'b': n += note(2); break;
	case 'c': n *= note(3); break;
	case 'd': n -= note(4); break;
	case 'e': n ^= note(5); break;
	case 'z': return n;
	default: n++;
	}
	return n;
}
F int interpreter(unsigned char *pc) {
	int a = 0;
	for (;;) switch (*pc++) {
	case 0: a++; break;
	case 1: a *= 3; break;
	case 2: a -= 7; break;
	case 3: a ^= 5; break;
	case 4: a += note(a); break;
	case 5: return a;
	case 6: a += note(1); break;
	default: return -a;
	}
}
F int threaded(unsigned char *pc) {
	static const void *const labels[] = { &&a, &&b, &&c, &&d, &&e, &&end };
	int n = 0;
	NEXT;
a: n++; NEXT;
b: n *= 3; NEXT;
c: n -= 7; NEXT;
d: n ^= 0x55; NEXT;
e: n += note(n); NEXT;
end: return n;
}
F int writable(int *pc) {
	static void *labels[] = { &&a, &&b, &&c, &&d, &&e, &&end };
	int n = 0;
	NEXT;
a: n++; NEXT;
b: n *= 3; NEXT;
c: n -= 7; NEXT;
d: n ^= 0x55; NEXT;
e: n += note(n); NEXT;
end: return n;
}
F int relative(int *pc) {
	static const int labels[] = { &&a-&&a, &&b-&&a, &&c-&&a, &&d-&&a, &&e-&&a, &&end-&&a };
	int n = 0;
	HOP;
a: n++; HOP;
b: n *= 3; HOP;
c: n -= 7; HOP;
d: n ^= 0x55; HOP;
e: n += note(n); HOP;
end: return n;
}
static int (*const functions[])(int) = { dense, biased, noDefault };
F int throughTable(int i, int x) {
	return functions[i](x);
}
F int throughPointer(int (*f)(int), int x) {
	return f(x + 1);
}
int main(void) {
	unsigned char code[] = { 0, 1, 2, 3, 4, 0, 5 };
	int wide[] = { 0, 1, 2, 3, 4, 0, 5 };
	for (int i = -6; i < 130; i++) {
		short s = i;
		long l = i;
		dense(i);
		biased(i);
		negative(l);
		masked(i);
		shifted((unsigned)i << 27);
		longs(l);
		byteSized(i);
		shorts(&s);
		memory(&i);
		noDefault(i & 7);
		nested(i, i);
		nested(2, i);
		sparse(i);
		sparse(i + 980);
		throughTable(i & 1, i);
		throughPointer(dense, i);
	}
	unsignedText((unsigned char *)"ab~cdexAyz");
	signedText("ab~cdexAyz");
	interpreter(code);
	threaded(code);
	writable(wide);
	relative(wide);
	return 0;
}
