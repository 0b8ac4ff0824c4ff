// The process dies in a function of the library, which was jumped to in the place of a return.
#include <stdio.h>
#include <string.h>

#include "checksum.h"

NOINLINE static char *copy(char *to, const char *from) { return strcpy(to, from); }
NOINLINE static int first_of(const char *from)
{
	char text[64];
	return copy(text, from)[0];
}

int main(void)
{
	mix(first_of("text"));
	mix(first_of("more") + strlen("x"));
	report();
	fflush(stdout);
	return first_of((char *)8) + first_of("never");
}
