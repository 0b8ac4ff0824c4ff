#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	int (*numbers)(int) = NULL;
	char line[100];
	while (argc > 1 && fgets(line, sizeof line, stdin)) {
		int n = 0;
		if (!strcmp(line, "load\n"))
			numbers = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "numbers");
		if (!strcmp(line, "wait\n"))
			sleep(2);
		if (!strcmp(line, "even\n"))
			n = numbers(4);
		printf("%d\n", n);
		fflush(stdout);
	}
	return 0;
}
