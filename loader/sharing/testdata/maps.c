// Maps memory as its input asks for, and prints where: a line, and a page, each.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char constant[] = "of the program's own file";

static void code(void)
{
	__asm__("nop\nnop\nnop");
}

static void *rest(void *p)
{
	pause();
	return p;
}

int main(int argc, char **argv)
{
	char what[64];
	void *last = 0;
	int fd = open(argv[argc - 1], O_RDONLY);
	while (scanf("%63s", what) == 1) {
		void *p = 0;
		if (!strcmp(what, "private"))
			p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (!strcmp(what, "shared"))
			p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (!strcmp(what, "moved"))
			p = mremap(last, 4096, 8192, MREMAP_MAYMOVE);
		if (!strcmp(what, "read"))
			p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
		if (!strcmp(what, "file"))
			p = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
		if (!strcmp(what, "segment"))
			p = shmat(shmget(IPC_PRIVATE, 4096, 0600), 0, 0);
		if (!strcmp(what, "gone")) {
			p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
			munmap(p, 4096);
		}
		if (!strcmp(what, "protect")) {
			p = (void *)((unsigned long)constant & ~4095ul);
			mprotect(p, 4096, PROT_READ | PROT_WRITE);
			mprotect(p, 4096, PROT_READ);
		}
		if (!strcmp(what, "code"))
			p = (void *)code;
		if (!strcmp(what, "break")) { // though it cannot be written
			int memory = open("/proc/self/mem", O_RDWR);
			pwrite(memory, "\xcc", 1, (long)code);
			close(memory);
		}
		if (!strcmp(what, "queue")) {
			struct io_uring_params r = {0};
			int ring = syscall(SYS_io_uring_setup, 8, &r);
			p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
		}
		if (!strcmp(what, "requests")) {
			aio_context_t requests = 0;
			if (!syscall(SYS_io_setup, 8, &requests))
				p = (void *)requests;
		}
		if (!strcmp(what, "thread")) {
			pthread_t t;
			pthread_create(&t, 0, rest, 0);
		}
		printf("%lx\n", (unsigned long)p);
		fflush(stdout);
		last = p;
	}
	return 0;
}
