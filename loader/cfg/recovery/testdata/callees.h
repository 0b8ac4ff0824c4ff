// What the routines around switches call, and a main function.
#pragma once

#include <stdlib.h>
__attribute__((noinline)) void may_exit(int n) {
	if (n) exit(n);
}
int note(void) {
	return 0;
}
int main(int c, char **v) {
	may_exit(c > 5);
	return 0;
}
