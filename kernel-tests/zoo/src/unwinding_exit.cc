// A library's function that never returns, which its name does not tell, called where an exception
// of it would be cleaned up after.
#include <err.h>

#include "checksum.h"

static unsigned exited = 1;

struct Depth {
	unsigned number;
	~Depth() { exited = exited * 31 + number; }
};

NOINLINE static int descend(int n)
{
	Depth depth{(unsigned)n};
	if (n == 0) {
		report();
		fclose(stderr); // to which it writes the program's name
		errx(3, "the end");
	}
	mix(exited);
	return 1 + descend(n - 1);
}

int main() { return descend(12); }
