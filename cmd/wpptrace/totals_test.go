package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/wpp/store"
	"wpptrace/query"
	"wpptrace/query/profile"
)

// favored has what f starts run before most that the machine does else: a process that hardly runs
// in its windows shows in them too little to say anything of the rest.
func favored(t *testing.T, f func()) {
	t.Helper()
	runtime.LockOSThread() // which is what has the priority
	defer runtime.UnlockOSThread()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	must(t, err)
	defer func() { must(t, unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before)) }()
	must(t, unix.Setpriority(unix.PRIO_PROCESS, 0, -10))
	f()
}

// TestTotalsOfWindows: what is recorded in windows of a process that hits slow down hundreds of
// times says how often its routines were called in all. It may know that of one alone: then another
// recording follows.
func TestTotalsOfWindows(t *testing.T) {
	var p progress
	var pid int
	favored(t, func() { pid = startCalls(t, p.note) })
	known, held := 0, 0
	for recordings := 0; recordings < 5 && known < 2; recordings++ {
		k, h := totalsHold(t, pid, &p)
		known, held = known+k, held+h
	}
	if known < 2 || held < known-1 {
		t.Errorf("of %d intervals %d hold", known, held)
	}
}

// totalsHold records a process in windows. It returns of how many of its routines it is known how
// often they were called in all, and how many of these intervals hold.
func totalsHold(t *testing.T, pid int, p *progress) (known, held int) {
	t.Helper()
	var w *tracer
	favored(t, func() { w = startTracer(t, "-v", "-p", strconv.Itoa(pid), "-o", "x.wpp") })
	w.expect("recording process")
	began := time.Now()
	for range 12 {
		w.expect("sites were counted")
		w.expect("a window has ended")
	}
	w.signal(os.Interrupt)
	took := time.Since(began)
	w.wait(0)
	s, err := store.ReadFile(w.path("x.wpp"), query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	flat, err := profile.Flat(s)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]*profile.RoutineFigures{}
	for i := range flat.Routines {
		if x := &flat.Routines[i]; x.Routine != profile.NoRoutine {
			calls[s.Routines[x.Routine].Name] = x
		}
	}
	ran := float64(took) / float64(p.stretch(t, began, began.Add(took))) * 1e6
	t.Logf("%v, CPU time %v, %.3g calls", took, s.Figures.CPUTime, ran)
	for n := range 12 {
		truth := ran / float64(uint(2)<<min(n, 10)) // the last two are as frequent as each other
		x := calls[fmt.Sprintf("f%d", n)]
		if x == nil || x.CallsInAll == nil {
			t.Logf("f%d: not known", n)
			continue
		}
		known++
		// the process and this test measure time in different ways
		const slack = 1.05
		total := x.CallsInAll
		if total.Least <= truth*slack && truth <= total.Most*slack {
			held++
		}
		t.Logf("f%d: %.3g-%.3g, %d in windows, in truth %.3g", n, total.Least, total.Most, x.Calls,
			truth)
	}
	t.Logf("%d windows, %.3g-%.3g of it", s.Figures.Windows, s.Figures.SampledLeast,
		s.Figures.SampledMost)
	return known, held
}
