/* Each line of standard input is a way through choose, and is answered; with an x behind it, it
 * goes that way very often. Arguments are lines, too. */
#include <stdio.h>
static volatile int n;
static int choose(char way) {
	if (way == '1')
		n += 2;
	return n++;
}
static void answer(const char *line) {
	for (int i = 0; i < (line[1] == 'x' ? 200000 : 1); i++)
		choose(line[0]);
	puts("done");
	fflush(stdout);
}
int main(int argc, char **argv) {
	char line[100];
	for (int i = 1; i < argc; i++)
		answer(argv[i]);
	while (argc == 1 && fgets(line, sizeof line, stdin))
		answer(line);
	return 7;
}
