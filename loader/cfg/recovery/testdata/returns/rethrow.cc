// std::rethrow_exception never returns: what follows its call is reached otherwise.

#include <exception>
__attribute__((noinline)) int again(std::exception_ptr p, int x) {
	if (p) std::rethrow_exception(p);
	return x;
}
int main(int c, char **v) {
	return again(nullptr, c);
}
