// With -mfunction-return=thunk, a routine returns by way of a call into the middle of a thunk.

__attribute__((noinline)) static int f(int k, int x) {
	if (k & 1) x += 3;
	return x * k + 1;
}
int main() {
	int s = 0;
	for (int i = 0; i < 20; i++) s = s * 3 + f(i, s & 63);
	return s;
}
