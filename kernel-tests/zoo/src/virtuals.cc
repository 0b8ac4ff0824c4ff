// Virtual calls: through base classes, thunks of multiple and virtual inheritance, member pointers;
// one of them throws.
#include "checksum.h"

struct shape {
	virtual int area(int n) const = 0;
	virtual const char *name() const { return "shape"; }
	virtual ~shape() { mix(1); }
};

struct square : shape {
	int area(int n) const override { return n * n; }
	const char *name() const override { return "square"; }
};

struct triangle : shape {
	int area(int n) const override
	{
		int sum = 0;
		for (int i = 0; i <= n; i++)
			sum += i;
		return sum;
	}
	~triangle() override { mix(2); }
};

struct impossible : shape {
	int area(int n) const override
	{
		if (n > 2)
			throw n;
		return 0;
	}
};

struct named {
	virtual int letter(int i) const { return 'a' + i; }
	virtual ~named() {}
};

// letter is reached through a thunk that moves this back.
struct labelled : square, named {
	int salt = 5;
	int letter(int i) const override { return i % 2 ? salt : salt * i; }
};

struct base {
	int data = 3;
	virtual int value() const { return data; }
	virtual ~base() {}
};
struct left : virtual base { int value() const override { return data * 2; } };
struct right : virtual base { int more = 4; };
struct diamond : left, right {
	int value() const override { return data > 2 ? more + left::value() : more; }
};

NOINLINE static int total(const shape *const *shapes, int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		try {
			sum += shapes[i]->area(i + 1) * shapes[i]->name()[1];
		} catch (int code) {
			sum -= code;
		}
	}
	return sum;
}

NOINLINE static int letters(const named &n)
{
	int r = 0;
	for (int i = 0; i < 5; i++)
		r = r * 3 + n.letter(i);
	return r;
}

NOINLINE static int value_of(const base &b) { return b.value() + 1; }

int main()
{
	const shape *shapes[] = {new square, new triangle, new impossible, new labelled, new triangle,
		new square};
	mix(total(shapes, 6));
	mix(letters(labelled()));
	mix(letters(named()));
	mix(value_of(diamond()) + value_of(base()));
	int (shape::*method)(int) const = &shape::area;
	for (int i = 0; i < 12; i++)
		if (i % 6 != 2)
			mix((shapes[i % 6]->*method)(i));
	for (const shape *s : shapes)
		delete s;
	report();
	return 0;
}
