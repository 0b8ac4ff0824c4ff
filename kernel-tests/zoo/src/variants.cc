// Variants visited in loops with catch clauses: tables of switches whose bases are kept in
// registers across landing pads, and ways to where no variant gets.
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "checksum.h"

struct Sum;
struct Negation;
using Node = std::variant<int, std::string, std::unique_ptr<Sum>, std::unique_ptr<Negation>>;
struct Sum {
	Node left, right;
};
struct Negation {
	Node operand;
};

static unsigned seed = 1;

static int draw(int n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

struct Evaluator {
	long operator()(int n) const { return n; }
	long operator()(const std::string &s) const
	{
		if (s == "bad")
			throw std::invalid_argument(s);
		return s.size();
	}
	long operator()(const std::unique_ptr<Sum> &s) const { return std::visit(*this, s->left)
		+ std::visit(*this, s->right); }
	long operator()(const std::unique_ptr<Negation> &n) const
	{
		try {
			return -std::visit(*this, n->operand);
		} catch (std::invalid_argument &) {
			return 7;
		}
	}
};

static Node grow(int depth)
{
	if (depth == 0) {
		int n = draw(6);
		if (n == 0)
			return std::string("bad");
		if (n < 3)
			return std::string(3 * n, 'x');
		return n;
	}
	if (draw(3) == 0)
		return std::make_unique<Negation>(Negation{grow(depth - 1)});
	return std::make_unique<Sum>(Sum{grow(depth - 1), grow(depth - 1)});
}

struct Stubborn {
	Stubborn() {}
	Stubborn(const Stubborn &) { throw 5; }
	Stubborn &operator=(const Stubborn &) { throw 6; }
};
using Easy = std::variant<int, double, std::string, std::monostate, long, std::vector<int>>;
using Hard = std::variant<int, double, std::string, std::monostate, Stubborn>;

static void choose_own(Easy &v)
{
	if (draw(2) == 0)
		v = 7L;
	else
		v = std::vector<int>(draw(4));
}

static void choose_own(Hard &v) { v.emplace<Stubborn>(); }

template <class Variant> static void choose(Variant &v)
{
	switch (draw(6)) {
	case 0: v = draw(9); break;
	case 1: v = draw(9) * .5; break;
	case 2: v = std::string(draw(20), 'q'); break;
	case 3: v = std::monostate(); break;
	default: choose_own(v);
	}
}

struct Size {
	long operator()(int n) const { return n; }
	long operator()(double d) const { return d * 4; }
	long operator()(const std::string &s) const { return s.size(); }
	template <class T> long operator()(const T &) const { return -1; }
};

template <class Variant> NOINLINE static void mingle(int n)
{
	std::vector<Variant> all(n);
	for (auto &v : all)
		choose(v);
	for (auto &v : all)
		mix(std::visit(Size(), v));
	for (auto &v : all)
		try {
			Variant copy = v;
			std::visit([](auto &a, auto &b) { mix(sizeof a * 10 + sizeof b); }, v, copy);
			v = all[draw(n)];
		} catch (int e) {
			mix(e);
		} catch (std::bad_variant_access &) {
			mix(9);
		}
}

int main()
{
	mingle<Easy>(12);
	mingle<Hard>(12);
	std::vector<Node> nodes;
	for (int i = 0; i < 6; i++) {
		nodes.push_back(grow(3));
		try {
			mix(std::visit(Evaluator(), nodes.back()));
		} catch (std::exception &e) {
			mix(e.what()[0]);
		}
	}
	report();
	return 6;
}
