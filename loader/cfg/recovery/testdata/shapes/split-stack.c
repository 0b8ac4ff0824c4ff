// With -fsplit-stack, a routine may be entered in its middle, on another stack.

__attribute__((noinline)) static int f(int k, int x) {
	volatile char room[100000];
	room[k] = x;
	return room[k] + 1;
}
int main() {
	int s = 0;
	for (int i = 0; i < 20; i++) s = s * 3 + f(i, s & 63);
	return s;
}
