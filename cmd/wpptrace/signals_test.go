package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"wpptrace/internal/testenv"
)

// TestFaultsAndTimersAtOnce: a timer's signal is delivered at once with that of a fault, so that
// its handler runs first, as if it had interrupted the other one's first instruction. What would
// lead there by calls was recorded as run: g, once for each of them, that is for some fifty.
func TestFaultsAndTimersAtOnce(t *testing.T) {
	program := testenv.CompileC(t, `
		#include <pthread.h>
		#include <setjmp.h>
		#include <signal.h>
		#include <sys/time.h>
		static sigjmp_buf back;
		static volatile int crashes, calls, faults, alarms;
		__attribute__((noinline)) static void on_alarm(int number) { alarms++; }
		__attribute__((noinline)) static void on_fault(int number) {
			faults++;
			siglongjmp(back, 2);
		}
		__attribute__((noinline)) static int g(int x) {
			calls++;
			return x * 3;
		}
		__attribute__((noinline)) static int crash(int x) {
			crashes++;
			if (x & 1)
				*(volatile int *)8 = 1;
			return g(x);
		}
		static void *work(void *unused) {
			for (volatile int i = 0; i < 6000; i++)
				if (sigsetjmp(back, 1) == 0)
					crash(i);
			return unused;
		}
		int main(void) {
			struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0}};
			pthread_t thread;
			sigset_t alarm;
			signal(SIGALRM, on_alarm);
			signal(SIGSEGV, on_fault);
			setitimer(ITIMER_REAL, &often, 0);
			pthread_create(&thread, 0, work, 0);
			sigemptyset(&alarm);
			sigaddset(&alarm, SIGALRM);
			pthread_sigmask(SIG_BLOCK, &alarm, 0);
			pthread_join(thread, 0);
			setitimer(ITIMER_REAL, &never, 0);
			return calls != 3000;
		}`, "-O1", "-pthread")
	snapshot := filepath.Join(t.TempDir(), "x.wpp")
	if _, errs, status := wpptrace("-q", "-o", snapshot, "--", program); status != 0 {
		t.Fatalf("exit %d: %s", status, errs)
	}
	found, errs, status := wpptrace("find", "--count", "g()", snapshot)
	n, err := strconv.Atoi(strings.Fields(found + " -")[0])
	if status != 0 || err != nil {
		t.Fatalf("exit %d: %s, %q", status, errs, found)
	}
	const rare = 5 // a signal comes amid the first instructions of a handler or of g
	if n < 3000-rare || n > 3000+rare {
		t.Errorf("g was called 3000 times, and %d times by the recording", n)
	}
}
