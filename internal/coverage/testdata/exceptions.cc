#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
#include "phases.h"
struct Shape {
	virtual ~Shape() {}
	virtual int area() const = 0;
};
struct Square : Shape {
	int side;
	explicit Square(int n) : side(n) {}
	int area() const override {
		return side * side;
	}
};
struct Odd : Shape {
	int area() const override {
		throw std::runtime_error("odd");
	}
};
template <typename T> static T largest(const std::vector<T> &list) {
	if (list.empty())
		throw std::out_of_range("empty");
	T most = list[0];
	for (const T &x : list)
		if (x > most)
			most = x;
	return most;
}
static int guarded(const Shape &shape) {
	try {
		return shape.area();
	} catch (const std::logic_error &e) {
		std::puts(e.what());
		return -2;
	} catch (const std::exception &e) {
		std::puts(e.what());
		return -1;
	}
}
static int words(const std::string &text) {
	std::map<char, int> count;
	for (char c : text)
		count[c]++;
	int n = 0;
	for (const auto &entry : count)
		n += entry.second > 1;
	return n;
}
int main() {
	int n = words("first");
	phase();
	n += guarded(Square(3));
	n += guarded(Odd());
	n += largest(std::vector<int>{3, 9, 2});
	try {
		n += static_cast<int>(largest(std::vector<double>()));
	} catch (const std::out_of_range &) {
		n += 100;
	}
	std::printf("%d\n", n);
	return 0;
}
