// All exceptions of the loop come out of cases of the switch, and lead back to it.

int global;
__attribute__((noinline)) int may(int k) {
	switch (k) {
	case 0: return 1;
	case 3: throw k;
	}
	return k * 2;
}
__attribute__((noinline)) int loop(int n) {
	int sum = 0;
	for (int i = 0; i < n; i++) try {
		switch (i % 7u) {
		case 0: sum += 1; break;
		case 1: sum += may(i) * 3; break;
		case 2: sum ^= may(global); break;
		case 3: throw n;
		case 4: sum -= may(sum); break;
		case 5: sum *= may(2); break;
		case 6: sum += 11; global++; break;
		}
	} catch (int k) {
		sum += 1000 + k;
	}
	return sum;
}
int main(int c, char **v) {
	return loop(c);
}
