// A thread faults in a function of the library before its first word.
#include <pthread.h>
#include <string.h>

#include "checksum.h"

NOINLINE static long length(const char *text)
{
	long n = strlen(text);
	mix(n > 3 ? 7 : 5);
	return n;
}

static void *measure(void *text)
{
	long n = length(text);
	mix(n > 4 ? 17 : 19);
	return 0;
}

int main(int argc, char **argv)
{
	static char *volatile texts[] = {"text", "a text", (char *)8};
	mix(length(argv[argc - 1]) > 0);
	report();
	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		pthread_t thread;
		if (pthread_create(&thread, 0, measure, texts[i]) || pthread_join(thread, 0))
			return 1;
	}
	return 0;
}
