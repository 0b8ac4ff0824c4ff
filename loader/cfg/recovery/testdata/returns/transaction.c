// A transaction begins anew where it is aborted (gcc -fgnu-tm), so that what begins it returns
// twice.

int _ITM_beginTransaction(unsigned flags, ...);
__attribute__((noinline)) int begins(void) {
	return _ITM_beginTransaction(1) + 1;
}
int main(void) {
	return begins();
}
