// Sleeps while a child works.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
	alarm(120);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		puts("begun");
		fflush(stdout);
		for (;;)
			;
	}
	for (;;)
		pause();
}
