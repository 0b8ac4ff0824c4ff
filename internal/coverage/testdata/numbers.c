int numbers(int n) {
	if (n % 2 == 0)
		return n / 2;

	n *= 3;
	n += 1;
	return n;
}
