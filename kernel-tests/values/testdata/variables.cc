// Keeps each value that its variables take, and prints them at its end as "ROUTINE.NAME VALUE". For
// TestVariables.
#include <cstdio>

namespace {
struct {
	const char *name;
	long value;
} notes[200];
int noted;

void note(const char *name, long value) {
	if (noted == 200)
		__builtin_trap();
	notes[noted].name = name;
	notes[noted++].value = value;
}
} // namespace

namespace bank {
int open_accounts;

struct Named {
	virtual ~Named() {}
	short number = 7;
};

class Account : public Named {
public:
	static int total;
	__attribute__((noinline)) void pay(int amount) {
		note("bank::Account::pay.this->balance", balance);
		note("bank::Account::pay.amount", amount);
		balance += amount;
		note("bank::Account::pay.this->balance", balance);
		number++;
		note("bank::Account::pay.this->number", number);
		total += amount;
		note("bank::Account::total", total);
	}

private:
	int balance = 100;
};

int Account::total;

template <typename T> struct Pair {
	T first, second;
};

template <typename T> __attribute__((noinline)) T larger(const Pair<T> &of) {
	note("larger.of->second", of.second);
	T best = of.first > of.second ? of.first : of.second;
	note("larger.best", best);
	return best;
}
} // namespace bank

int main() {
	note("bank::Account::total", 0);
	note("bank::Account::pay.this->number", 7);
	bank::Account a;
	for (int i = 1; i < 4; i++) {
		bank::open_accounts += i;
		note("bank::open_accounts", bank::open_accounts);
		a.pay(i * 11);
	}
	bank::Pair<long> p = {3, -40000000000};
	bank::Pair<long> q = {-5, 12};
	long sum = bank::larger(p) + bank::larger(q);
	for (int i = 0; i < noted; i++)
		std::printf("%s %ld\n", notes[i].name, notes[i].value);
	return sum == 0;
}
