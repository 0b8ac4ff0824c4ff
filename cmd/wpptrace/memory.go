package main

import (
	"fmt"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/pflag"

	"wpptrace/compress/spill"
	"wpptrace/internal/record"
)

// memoryFlags bound the memory of what is recorded.
type memoryFlags struct{ all, thread size }

func defaultMemory() memoryFlags { return memoryFlags{all: 1 << 30} }

func (m *memoryFlags) add(f *pflag.FlagSet) {
	f.Var(&m.all, "memory", "most `BYTES` of memory for what is recorded, as 256M; what is beyond goes to the snapshot's file meanwhile, which gets larger; 0: no limit; where the control group allows little, the default is less")
	f.Var(&m.thread, "thread-memory", "most `BYTES` of memory for each thread; 0: no limit but that for all")
}

const (
	leastMemory = record.LeastMemory
	// leastThread is the least limit of a thread: with less, segments hold next to nothing, and are
	// all tables.
	leastThread = 64 << 10
	// processMemory is what a process takes besides what it records: its code, the buffers of
	// writing, and what the collector has not taken yet.
	processMemory = 48 << 20
)

func (m *memoryFlags) check() error {
	if m.all > 0 && m.all < leastMemory {
		return usagef("--memory %v is below %v, and not 0", m.all, size(leastMemory))
	}
	if m.thread > 0 && m.thread < leastThread {
		return usagef("--thread-memory %v is below %v, and not 0", m.thread, size(leastThread))
	}
	return nil
}

// limits are those of what is recorded.
func (m *memoryFlags) limits() spill.Limits {
	return spill.Limits{Thread: uint64(m.thread), All: uint64(m.all)}
}

// process has the whole process keep to the limits.
func (m *memoryFlags) process() spill.Limits {
	l := m.limits()
	if l.All > 0 {
		keepTo(int64(l.All / 2)) // the grammars are not on the collector's heap
		l.All -= processMemory
	}
	return l
}

// allowedMemory is what the control group of this process allows all that are in it: the kernel
// kills what takes more. 0: no less than there is.
func allowedMemory() size {
	limit, err := memlimit.FromCgroup()
	if err != nil { // no limit, or nothing that tells one
		return 0
	}
	return size(min(limit, math.MaxInt64))
}

// wished is what the user has the collector keep to, by GOMEMLIMIT.
var wished = debug.SetMemoryLimit(-1)

// keepTo has the collector keep to so many bytes, or to what it may have of what is allowed, or wished.
func keepTo(bytes int64) {
	debug.SetMemoryLimit(min(bytes, wished, collectorsPart(allowedMemory())))
}

// collectorsPart is half of what is allowed: the rest is for what is not on its heap, and for what
// it has not collected yet.
func collectorsPart(allowed size) int64 {
	if allowed == 0 {
		return math.MaxInt64
	}
	return int64(allowed / 2)
}

// fit keeps the limit, if it was not given, within a part of what is allowed.
func (m *memoryFlags) fit(allowed, part size, given func(flag string) bool) error {
	if allowed == 0 || given("memory") {
		return nil
	}
	if allowed < leastMemory {
		return fmt.Errorf("keep to the %v of memory that the control group of this process allows: have it allow %v or more", allowed, size(leastMemory))
	}
	m.all = min(m.all, allowed/part)
	return nil
}

// fitMemory keeps what was not given within what is allowed: a quarter is for what is recorded,
// half for the process itself, what it plans and prints included, and a sixteenth for the buffer.
// What is left is for its guard and the kernel, which has a second buffer of 4 MiB at most.
func (o *recordFlags) fitMemory(allowed size, given func(flag string) bool) error {
	if allowed == 0 {
		return nil
	}
	if err := o.memory.fit(allowed, 4, given); err != nil {
		return err
	}
	if !given("ring-size") {
		o.ring = fitRing(o.ring, allowed)
	}
	return nil
}

// fitRing makes a buffer between kernel and wpptrace smaller, the size of which nobody gave, where
// less is allowed.
func fitRing(ring, allowed size) size {
	for allowed > 0 && ring > allowed/16 {
		ring /= 2
	}
	return ring
}
