// The source of std::visit says that there are no other variants: compilers leave them in ways
// that lead past the addresses of tables, and out of the routine.

#include <string>
#include <variant>
#include <vector>
struct number { int n; };
using any = std::variant<int, number, double, std::string, std::monostate, long, std::vector<int>>;
static unsigned long sum;
template <class... T> struct either : T... {
	using T::operator()...;
};
template <class... T> either(T...) -> either<T...>;
__attribute__((noinline)) void visit(std::vector<any> &all) {
	for (auto &x : all) sum += std::visit(either{[](int i) { return i; },
		[](const number &a) { return a.n * 2; },
		[](const std::string &s) { return (int)s.size(); }, [](auto &) { return -1; }}, x);
	for (auto &x : all) try {
		any y = x;
		std::visit([&](auto &p, auto &q) { sum += sizeof p * 10 + sizeof q; }, x, y);
		x = all[0];
	} catch (int e) {
		sum += e;
	} catch (std::bad_variant_access &) {
		sum++;
	}
}
int main(int c, char **v) {
	std::vector<any> all(c);
	visit(all);
	return sum;
}
