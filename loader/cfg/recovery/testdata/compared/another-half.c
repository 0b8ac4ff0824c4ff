// Two numbers lie in one register: one half is compared, and the other is the index.
#include "eight.h"

struct pair { unsigned a, b; };
N long f(long a, struct pair s) {
	if (s.a > 5) return 0;
	EIGHT(s.b) return a * 7;
}

#include "callees.h"
