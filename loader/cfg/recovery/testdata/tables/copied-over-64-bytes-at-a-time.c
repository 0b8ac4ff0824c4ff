// Which table it is is written anew by a store of 64 bytes, by AVX-512, in memory that is not
// of the frame.
#include "labels.h"

struct vm { const int *tab; long n[7]; } g;
const struct vm *volatile other;
__attribute__((target("avx512f,prefer-vector-width=512"))) N long f(const unsigned char *pc,
	long a, int k) {
	static const int tA[] = { &&A - &&A, &&B - &&A, &&X - &&A, &&X - &&A };
	static const char pad[3000] = { 1 };
	static const int tB[] = { &&C - &&A, &&D - &&A, &&X - &&A, &&X - &&A };
	static const struct vm vB = { tB, 3 };
	q += pad[k];
	other = &vB;
	g.tab = tA;
	g = *other;
	goto *(&&A + g.tab[*pc++ & 3]);
A: a += q; return a;
B: a ^= 3; q++; if (a & 64) goto D; if (a & 128) goto C; return a;
C: a *= 3; return a;
D: a -= q * 5; q += 2; return a;
X: return a;
}

#include "callees.h"
