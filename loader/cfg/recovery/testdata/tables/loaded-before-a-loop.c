// What the table begins with is loaded before the loop, and each of its jumps goes by an index
// that is computed otherwise.
#include "labels.h"

long g[64];
N long h(long a, long b) {
	return a ^ b;
}
N long f(unsigned a, unsigned b) {
	unsigned x = a, z = 32;
	for (int i = 5; i > 0; i--) {
		static void *const t[] = { &&A, &&B, &&C };
		unsigned c = g[b & 63];
		int w = 0;
		goto *t[c % 3];
	A: x += g[(b | x) & 63];
		if (w++ < 2 && q-- > 0) {
			c = c * 5 + b;
			goto *t[c % 3];
		}
		goto E;
	B: x += z;
		if (w++ < 4 && q-- > 0) {
			c = c * 5 + z;
			goto *t[c % 3];
		}
		goto E;
	C: x += g[b & 63];
		if (w++ < 2 && q-- > 0) {
			c = c * 5 + 175;
			goto *t[c % 3];
		}
		goto E;
	E: z ^= h(b / 12, 252);
	}
	return x + z;
}

#include "callees.h"
