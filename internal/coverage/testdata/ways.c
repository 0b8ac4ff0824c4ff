/* Each argument is a way through both: two digits. All blocks run with 10 and 01. Without any, they
 * are lines of standard input, which are answered. */
#include <stdio.h>
static volatile int n;
static int choose(const char *way) {
	if (way[0] == '1')
		n += 2;
	else
		n += 3;
	if (way[1] == '1')
		n += 5;
	else
		n += 7;
	return n;
}
static int loop(const char *way) {
	int odd = 0;
	for (int i = 0; i < 3; i++) {
		if (way[i % 2] == '1')
			odd++;
		if (odd > 2)
			n++;
	}
	return odd;
}
static int same(const char *way) {
	return way[0] ? n++ : n--;
}
static void serve(void) {
	char line[100];
	while (fgets(line, sizeof line, stdin)) {
		for (int i = 0; i < (line[2] == 'x' ? 200000 : 1); i++)
			choose(line);
		puts("done");
		fflush(stdout);
	}
}
int main(int argc, char **argv) {
	if (argc == 1)
		serve();
	for (int i = 1; i < argc; i++) {
		choose(argv[i]);
		if (argv[i][2])
			loop(argv[i]);
		same(argv[i]);
	}
	return 7;
}
