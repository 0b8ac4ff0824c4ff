int main(int argc, char **argv) {
	int n = 0;
	for (int i = 1; i < argc; i++)
		switch (argv[i][0]) {
		case 'a':
			n += 2;
			break;
		case 'b':
			n += 3;
			break;
		}
	return n > 100;
}
