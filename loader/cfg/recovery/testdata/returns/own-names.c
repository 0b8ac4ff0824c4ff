// The program has functions of the names of library functions that never return: its own do.

int printf(const char *, ...);
__attribute__((noinline)) static void quick_exit(int n) {
	printf("%d\n", n);
}
__attribute__((noinline)) void rust_panic(int n) {
	printf("%d\n", n);
}
void err(int, const char *, ...);
__attribute__((noinline)) int calls(int i) {
	quick_exit(i);
	rust_panic(i);
	err(i, "no");
	return i;
}
int main(int c, char **v) {
	return calls(c);
}
