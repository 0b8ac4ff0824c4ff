package sample

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/bpf"
)

// measureCost measures what a sample takes of whom it interrupts here, on a thread of our own: the
// interrupt, the program, and the timer that is set again. Cost: some 20 ms of CPU time.
func measureCost(o *bpf.SampleObjects) (time.Duration, error) {
	const (
		period = 50 * time.Microsecond
		run    = 500 * time.Microsecond
		runs   = 21
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := o.Target.Set(uint32(os.Getpid())); err != nil {
		return 0, fmt.Errorf("measure what a sample costs: %w", err)
	}
	c, err := setClock(unix.Gettid(), -1, period)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if err := c.run(o.Sample); err != nil {
		return 0, err
	}
	n := 1000
	for spin(n) < run {
		n += n / 2
	}
	var without, with []time.Duration
	for range runs {
		if err := c.set(unix.PERF_EVENT_IOC_DISABLE); err != nil {
			return 0, err
		}
		without = append(without, spin(n))
		if err := c.set(unix.PERF_EVENT_IOC_ENABLE); err != nil {
			return 0, err
		}
		with = append(with, spin(n))
	}
	slow, fast := median(with), median(without)
	return max(slow-fast, 0) * period / slow, nil
}

// median is that of an odd number of times: some runs are disturbed.
func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

var sink uint64

// spin computes for a while, and says how long.
//
//go:noinline
func spin(n int) time.Duration {
	began := time.Now()
	x := sink | 1
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
	return time.Since(began)
}

// leastPeriod is how often a CPU is to be interrupted at most: rate times a second, and so that the
// interrupts of all CPUs together are not too many, and that what they cost, with some margin, is a
// share of it at most.
func leastPeriod(cost time.Duration, share float64, rate, cpus int) time.Duration {
	const (
		ofAll  = 20000 // a second
		margin = 0.85
	)
	return max(
		time.Second/time.Duration(rate),
		time.Second*time.Duration(cpus)/ofAll,
		time.Duration(float64(cost)/(share*margin)),
	)
}

// uneven is a period that is somewhat longer, by chance: what a process does at every tick, say, is
// then no more often seen than what it does at other times.
func uneven(period time.Duration) time.Duration {
	const upTo = 0.06
	return period + time.Duration(rand.Float64()*upTo*float64(period))
}
