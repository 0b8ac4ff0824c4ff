// What returns to a landing pad that looks at the exception does not return, though nobody
// knows the function.

[[noreturn]] void gone(int);
void back(int);
extern "C" int never(int i) {
	try {
		gone(i);
	} catch (int v) {
		return v + i;
	}
	return 2;
}
extern "C" int returns(int i) {
	try {
		back(i);
	} catch (int v) {
		return v + i;
	}
	return 2;
}
