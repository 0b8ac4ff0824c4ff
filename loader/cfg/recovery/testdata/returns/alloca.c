// A routine with alloca ends by a lea of rsp, which takes no address.

__attribute__((noipa)) void note(void *fn, void *site) {
	__asm__ volatile("" : : "r"(fn), "r"(site));
}
__attribute__((noipa)) long hook(long n, long m) {
	void *volatile site = __builtin_return_address(0);
	long k = n * m;
	char *p = __builtin_alloca(n + 20);
	p[0] = n;
	note(p, site);
	note(p + m, site);
	return n + m + k;
}
int main(int c, char **v) {
	return hook(c, c + 1);
}
