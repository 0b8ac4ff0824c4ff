// What a pointer is to is compared, and the variable that it may be to is changed by its name.
#include "eight.h"

N long f(long a, unsigned v) {
	unsigned x;
	unsigned *p = pick(&x, v);
	if (*p <= 3) {
		x = v >> 1 & 7;
		EIGHT(*p)
	}
	set(&x, 1);
	return a * 7;
}

#include "callees.h"
