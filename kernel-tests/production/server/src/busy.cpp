#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual long area() const = 0;
};
struct Square : Shape {
	long a;
	explicit Square(long a) : a(a) {}
	long area() const override { return a * a; }
};
struct Oblong : Shape {
	long a, b;
	Oblong(long a, long b) : a(a), b(b) {}
	long area() const override { return a * b; }
};

struct Account {
	std::string name;
	long balance;
};

__attribute__((noinline)) static long interest(Account &a, long rate) {
	return a.balance += a.balance * rate / 100;
}

__attribute__((noinline)) static std::vector<Account> make(long n) {
	std::vector<Account> list;
	for (long i = 0; i < 400; i++)
		list.push_back({"user" + std::to_string(i * n % 97) + "@host" + std::to_string(i % 7),
			i * 31 % 101});
	return list;
}

__attribute__((noinline)) static long shapes(long n) {
	std::vector<std::unique_ptr<Shape>> list;
	for (long i = 0; i < 100; i++)
		if ((i * n) % 3)
			list.push_back(std::make_unique<Square>(i));
		else
			list.push_back(std::make_unique<Oblong>(i, n % 10));
	long sum = 0;
	for (auto &s : list)
		sum += s->area();
	return sum;
}

__attribute__((noinline)) static long work(long n) {
	auto list = make(n);
	std::sort(list.begin(), list.end(), [](const Account &a, const Account &b) {
		return a.balance != b.balance ? a.balance < b.balance : a.name < b.name;
	});
	std::map<std::string, long> totals;
	std::unordered_map<std::string, long> seen;
	for (auto &a : list) {
		totals[a.name.substr(a.name.find('@'))] += interest(a, n % 5);
		seen[a.name]++;
	}
	long sum = shapes(n);
	for (auto &[name, total] : totals)
		sum = sum * 31 + total + long(name.size());
	return sum + long(seen.size());
}

int main() {
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		printf("%ld\n", work(atol(line)));
		fflush(stdout);
	}
}
