// A hardware transaction, by intrinsics: a probe in it ended it, so that programs took their
// fallback for ever.

#include <immintrin.h>
int g;
#define F __attribute__((noinline, noclone))
F void within(int k) {
	g += k;
}
F void behind(int k) {
	g -= k;
}
F void instead(int k) {
	g ^= k;
}
F int begins(int k) {
	if (_xbegin() == _XBEGIN_STARTED) {
		within(k);
		if (k == 7) _xabort(1);
		_xend();
		behind(k);
		return 1;
	}
	instead(k);
	return 0;
}
int main(int c, char **v) {
	return begins(c);
}
