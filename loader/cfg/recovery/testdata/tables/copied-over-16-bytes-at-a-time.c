// Which table it is is written anew by a store that is wider than a pointer: the store of a
// structure, in a vector register.
#include "labels.h"

struct vm { const int *tab; long n; };
const struct vm *volatile other;
N long f(const unsigned char *pc, long a, int k) {
	static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A };
	static const char pad[3000] = { 1 };
	static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
	static const struct vm vB = { tB, 3 };
	struct vm v;
	v.tab = tA;
	v.n = k;
	__asm__("" : "+m"(v));
	q += pad[k];
	other = &vB;
	v = *other;
	__asm__("" : "+m"(v));
	goto *(&&A + v.tab[*pc++ & 3]);
A: a += q; return a;
B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a;
C: a *= 3; return a;
D: a -= q * 5; q += 2; return a;
X: return a;
}

#include "callees.h"
