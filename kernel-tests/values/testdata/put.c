// What a thread reads, another one has written over what it wrote itself.
#include <pthread.h>
#include <stdio.h>

static int shared;

__attribute__((noinline)) static void put(int n) {
	shared = n; // before
}

__attribute__((noinline)) static void change(int n) {
	shared = n; // likely
}

__attribute__((noinline)) static int get(void) {
	return shared;
}

static void *work(void *p) {
	change(0x68);
	return p;
}

int main(void) {
	pthread_t t;
	put(2);
	pthread_create(&t, 0, work, 0);
	pthread_join(t, 0);
	printf("%x\n", get());
	return 0;
}
