package coverage

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"wpptrace/internal/testenv"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/target"
	"wpptrace/loader/x86"
)

// A probe goes when it has shown what it can; a jump's stays longer where nothing else shows an
// outcome, and less long when probes have been in for some time.
func TestIsDone(t *testing.T) {
	const call, jump, aloneBoth, aloneOne = 0, 1, 2, 3
	equal := firsthit.Place{Condition: 4}
	w := &watch{
		sites: []site{{place: firsthit.Place{Condition: x86.NoCondition}}, {place: equal},
			{place: equal}, {place: equal}},
		alone: []bool{false, false, false, false, true, true, false, true},
	}
	for _, c := range []struct {
		site        int
		n           [firsthit.Outcomes]uint64
		early, late bool
	}{
		{call, [firsthit.Outcomes]uint64{0, 0}, false, false},
		{call, [firsthit.Outcomes]uint64{1, 0}, true, true},
		{jump, [firsthit.Outcomes]uint64{0, 0}, false, false},
		{jump, [firsthit.Outcomes]uint64{1, 0}, true, true},
		{aloneBoth, [firsthit.Outcomes]uint64{1, 0}, false, false},
		{aloneBoth, [firsthit.Outcomes]uint64{1, 1}, true, true},
		{aloneBoth, [firsthit.Outcomes]uint64{lessPatience, 0}, false, true},
		{aloneBoth, [firsthit.Outcomes]uint64{0, patience}, true, true},
		{aloneOne, [firsthit.Outcomes]uint64{1, 0}, false, false},
		{aloneOne, [firsthit.Outcomes]uint64{0, 1}, true, true},
	} {
		w.sweeps.began = time.Time{}
		early := w.isDone(c.site, c.n)
		w.sweeps.began = time.Now().Add(-2 * patienceLasts)
		if late := w.isDone(c.site, c.n); early != c.early || late != c.late {
			t.Errorf("site %d with %d passages is done: %v, later %v; want %v, %v", c.site, c.n,
				early, late, c.early, c.late)
		}
	}
}

// What is passed now and then is taken out before it is passed often.
func TestPassedNowAndThen(t *testing.T) {
	program := testenv.CompileC(t, `
#include <unistd.h>
__attribute__((noinline)) static void tick(int i) { usleep(i ? 20000 : 10000); }
int main(void) { for (int i = 0;; i = !i) tick(i); }`, "-O0")
	s := testenv.Start(t, exec.Command(program))
	p, err := target.Open(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x, err := prepare(&Options{Process: p})
	defer x.close()
	if err == nil {
		err = x.place()
	}
	if err == nil {
		err = x.watch.beginSweeps()
	}
	if err != nil {
		t.Fatal(err)
	}
	const some = 300 * time.Millisecond
	counts := make([]uint64, x.session.Counters())
	passages := func() (n uint64) {
		if err := x.watch.attend(time.Now().Add(some)); err != nil {
			t.Fatal(err)
		}
		if err := x.session.Passages(counts); err != nil {
			t.Fatal(err)
		}
		for _, k := range counts {
			n += k
		}
		return n
	}
	before, after := passages(), passages()
	if most := slices.Max(counts); before == after || most >= firsthit.Often {
		t.Fatalf("%d passages, then %d, %d at one place: they are to be seldom", before, after,
			most)
	}
	x.watch.sweeps.next = time.Now()
	if err := x.watch.sweep(); err != nil {
		t.Fatal(err)
	}
	if err := x.session.AwaitRemovals(); err != nil {
		t.Fatal(err)
	}
	if before, after = passages(), passages(); before != after {
		t.Errorf("%d more passages when all that runs has been taken out", after-before)
	}
	if x.watch.standing() == 0 {
		t.Error("nothing stands")
	}
}
