// A string that is too long for its field: who reads what is behind it reads what strcpy wrote.
#include <stdio.h>
#include <string.h>

static struct user {
	char name[8];
	int admin;
} user;

__attribute__((noinline)) static int check(struct user *u) {
	return u->admin;
}

int main(int argc, char **argv) {
	user.admin = 0; // before
	strcpy(user.name, argc > 1 ? argv[1] : "longnamegin");
	printf("%x\n", check(&user));
	return 0;
}
