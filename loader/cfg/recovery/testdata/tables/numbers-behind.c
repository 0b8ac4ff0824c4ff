// Numbers follow the table, which are no distances, and a name stands where they begin.
#include "each.h"
#include "labels.h"

#define NUMBER(n) -1, n,
N long f(const unsigned char *pc, long a) {
	static const int t[] = { &&A - &&A, &&B - &&A, &&C - &&A, &&D - &&A, &&X - &&A },
		n[] = { EACH_200(NUMBER) };
	OFF(t);
A: a += n[*pc++]; OFF(t);
B: a ^= 3; q++; OFF(t);
C: a *= 3; OFF(t);
D: a -= q * 5; q += 2; OFF(t);
X: return a;
}

#include "callees.h"
