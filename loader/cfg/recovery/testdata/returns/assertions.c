// Tests have a function of their own in place of the C library's NAME, which goes on.

#include <stdio.h>
static int failed;
__attribute__((noinline)) void NAME(int n) {
	failed += n;
}
__attribute__((noinline)) int checks(int i) {
	if (i > 3) NAME(i);
	return i * 3;
}
int main(int c, char **v) {
	printf("%d\n", checks(c) + failed);
	return 0;
}
