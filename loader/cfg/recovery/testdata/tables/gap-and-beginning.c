// Behind a gap, an entry leads to the beginning of the routine: neither ends the table.
#include "labels.h"

const unsigned char *volatile pc;
N void f(void) {
	static void *const t[] = { &&B, &&D, &&X, 0, &&A, &&C };
A: q++; GO(t);
B: q ^= 3; if (q & 1) goto D; if (q & 2) goto C; GO(t);
C: q *= 3; GO(t);
D: q -= 5; GO(t);
X: return;
}

#include "callees.h"
