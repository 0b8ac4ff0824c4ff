// A volatile variable is compared, and read again for the index.
#include "eight.h"

extern volatile unsigned state;
N long f(long a, unsigned v) {
	if (state <= 3) {
		q++;
		EIGHT(state)
	}
	return a * 7;
}
volatile unsigned state;

#include "callees.h"
