#include <stdio.h>
#include <string.h>
static int total;
static int add(int n) {
	total += n;
	return total;
}
static int scale(int n) {
	if (n > 4)
		return total *= n;
	return -1;
}
static int run(const char *command) {
	if (!strcmp(command, "add\n"))
		return add(1);
	if (!strcmp(command, "scale\n"))
		return scale(5);
	return 0;
}
int main(void) {
	char line[100];
	while (fgets(line, sizeof line, stdin)) {
		printf("%d\n", run(line));
		fflush(stdout);
	}
	return 7;
}
