// A restartable sequence: where the kernel left it, the record had what was behind it.

int count;
__attribute__((noinline)) int restarts(int k) {
	__asm__ volatile(
		".pushsection __rseq_cs,\"aw\"\n.balign 32\n.long 0, 0\n.quad 1f, 2f-1f, 4f\n"
		".popsection\n"
		"1: add $1,%0\n2: jmp 5f\n.long 0x53053053\n4: mov $100,%0\n5:\n" : "+r"(k));
	return k;
}
__attribute__((noinline)) int behind(int k) {
	return k ^ count;
}
int main(int c, char **v) {
	return behind(restarts(c));
}
