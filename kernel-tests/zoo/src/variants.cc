// Expression trees of std::variant, visited with catch clauses in the visiting loop: tables of switches whose bases are kept in registers across landing pads.
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
	long operator()(const std::unique_ptr<Sum> &s) const { return std::visit(*this, s->left) + std::visit(*this, s->right); }
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

int main()
{
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
