

static inline int least(int a, int b)
{ return a < b ? a : b; }




int main(void)
{
	char input[1 << 16];
	read_all(input);
	for (int at = 0; at < length; at++)
		at += longest_match(input, at, 0);





	flush();
	return 0;
}
