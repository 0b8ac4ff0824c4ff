// Objects with static storage: construction before main, on first use with a guard, a failed first
// use, destruction after.
#include "checksum.h"

struct tracked {
	int id;
	tracked(int id) : id(id)
	{
		if (id % 2)
			mix(id);
	}
	~tracked()
	{
		mix(id + 50);
		if (id == 1)
			report(); // the first constructed is the last destroyed
	}
};

static tracked first(1);
static tracked second(2);
static tracked array[] = {3, 4, 5};

NOINLINE static int on_first_use(int n)
{
	static tracked local(n);
	return local.id + n;
}

NOINLINE static int fails_at_first(int n)
{
	struct picky {
		int value;
		picky(int n) : value(n)
		{
			if (n < 2)
				throw n;
		}
	};
	static picky local(n);
	return local.value;
}

template <int N> struct counter {
	static int instances;
	counter() { instances += N; }
};
template <int N> int counter<N>::instances = N * 2;

int main()
{
	for (int n = 6; n < 12; n++)
		mix(on_first_use(n));
	for (int n = 1; n < 5; n++)
		try {
			mix(fails_at_first(n));
		} catch (int code) {
			mix(code + 70);
		}
	counter<3> a;
	counter<4> b, c;
	mix(counter<3>::instances * 10 + counter<4>::instances);
	for (const tracked &t : array)
		mix(t.id);
	return first.id + second.id;
}
