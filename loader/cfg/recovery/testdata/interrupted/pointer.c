// A transaction calls through a pointer what calls another.

#include <immintrin.h>
int g;
#define F __attribute__((noinline, noclone))
F void deeper(int k) {
	g += k;
}
F void within(int k) {
	deeper(k);
	g -= k;
}
F void direct(int k) {
	g ^= k;
}
void (*volatile by)(int) = within;
F int begins(int k) {
	if (_xbegin() == _XBEGIN_STARTED) {
		by(k);
		_xend();
		return 1;
	}
	direct(k);
	return 0;
}
int main(int c, char **v) {
	return begins(c);
}
