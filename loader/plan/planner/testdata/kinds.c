// A routine for each thing that a plan must decide on.

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#define NOINLINE __attribute__((noipa))
volatile int sink;
jmp_buf env;
// lea; ret: no probe
__attribute__((noinline)) static int leaf(int n) {
	return n * 3 + 1;
}
__attribute__((noinline)) int exported_leaf(int n) {
	return n * 5 + 2;
}
// its address is taken
NOINLINE static int taken_leaf(int n) {
	return n * 7 + 3;
}
int (*volatile pointer)(int) = taken_leaf;
NOINLINE static int loops(int n) {
	int s = 0;
	for (int i = 0; i < n; i++) s += leaf(i) ^ sink;
	return s;
}
// push: probed at its entry
NOINLINE static int saves(int n) {
	int a = loops(n);
	sink = a;
	return a + loops(n + 1);
}
NOINLINE static int even(int n);
NOINLINE static int odd(int n) {
	sink++;
	return even(n - 1) + 1;
}
// a circle of calls without a decision
NOINLINE static int even(int n) {
	sink++;
	return odd(n - 1) + 1;
}
NOINLINE static int indirect(int n) {
	return pointer(n) + pointer(n + 1);
}
NOINLINE static int jumps(int n) {
	if (setjmp(env)) return 1;
	sink = n;
	return 2;
}
NOINLINE static int outside(int n) {
	char *p = malloc(n);
	sink = (int)strlen(p);
	return atoi(p) + rand();
}
NOINLINE static int framed(int n) {
	volatile char *p = alloca(n);
	p[0] = leaf(n);
	return p[0] + saves(n);
}
NOINLINE static int dense(int n) {
	switch (n) {
	case 0: return sink * 3;
	case 1: return leaf(4);
	case 2: sink = 5; return 9;
	case 3: return sink << 3;
	case 4: return leaf(11) + 2;
	case 5: return sink / 3;
	case 6: return 77;
	}
	return 0;
}
int main(int argc, char **argv) {
	return saves(argc) + even(argc) + indirect(argc) + jumps(argc) + outside(argc) + framed(argc) +
		dense(argc) + exported_leaf(argc);
}
