package record

import (
	"os/exec"
	"testing"

	"wpptrace/internal/testenv"
)

// A thread whose end was lost was kept as one that goes on until the recording ended, with all that
// such a one takes: thousands of them were too much for a small control group.
func TestLostEnds(t *testing.T) {
	const begin, fill, end = 2, 3, 4
	s := testenv.StartSubject(t, exec.Command(testenv.CompileC(t, `
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned s;
static sem_t done, over;
__attribute__((noinline)) static unsigned work(unsigned s, unsigned i) {
	return s % 7 ? s * 31 + i : s / 3 + 1; }
static void *run(void *n) { for (long i = 0; i < (long)n; i++) s = work(s, i); return 0; }
static void *stay(void *n) { run(n); sem_post(&done); sem_wait(&over); return 0; }
static void storm(void)
{
	for (int i = 0; i < 1500; i++) {
		pthread_t t;
		pthread_create(&t, 0, run, (void *)20L);
		pthread_join(t, 0);
	}
}
int main(void)
{
	char line[32];
	pthread_t t;
	while (fgets(line, sizeof line, stdin)) {
		switch (atoi(line)) {
		case 2: pthread_create(&t, 0, stay, (void *)1000L); sem_wait(&done); break;
		case 3: storm(); break;
		case 4: sem_post(&over); pthread_join(t, 0); break;
		}
		printf("%u\n", s);
		fflush(stdout);
	}
	return 7;
}`, "-O1", "-pthread")))
	r := recordSubject(t, s)
	for _, what := range []int{begin, fill, end} {
		if what == fill { // nobody reads from here on
			must(t, r.threads.drain(t.Context()))
		}
		s.Ask(what)
	}
	stray := func() *thread {
		list, err := r.threads.strays()
		if err != nil || len(list) > 1 {
			t.Fatalf("%d threads are not there any more, %v", len(list), err)
		}
		if len(list) == 0 {
			return nil
		}
		return list[0]
	}
	lost := stray()
	must(t, r.threads.endStrays())
	if must(t, r.threads.endStrays()); lost == nil || stray() != lost {
		t.Fatalf("%+v was to be a stray, and to stay one before all is read", lost)
	}
	must(t, r.threads.drain(t.Context()))
	if stray() != lost {
		t.Fatal("its end was not lost: the test does not test")
	}
	must(t, r.threads.endStrays())
	if lost.decoder != nil || lost.ended || lost.lost == 0 || lost.gaps == 0 ||
		lost.hits != lost.received+lost.lost {
		t.Errorf("%+v: is to be over, and to report its losses", lost)
	}
	must(t, r.finish(t.Context()))
	s.IsClean()
	s.End()
	m, err := r.session.Counters().Metrics()
	if f := r.figures(); err != nil || f.Lost != m.LostHits || f.Anomalies != 0 {
		t.Errorf("the kernel lost %d hits (%v), the figures say %d; %d anomalies", m.LostHits, err,
			f.Lost, f.Anomalies)
	}
}
