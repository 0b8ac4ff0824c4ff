package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"wpptrace/compress/spill"
	"wpptrace/internal/memory"
	"wpptrace/internal/record"
)

// memoryFlags bound the memory of what is recorded.
type memoryFlags struct{ all, thread memory.Size }

func defaultMemory() memoryFlags { return memoryFlags{all: 1 << 30} }

func (m *memoryFlags) add(f *pflag.FlagSet) {
	f.Var(&m.all, "memory", "most `BYTES` of memory for what is recorded, as 256M; what is "+
		"beyond goes to the snapshot's file meanwhile, which gets larger; 0: no limit; where the "+
		"control group allows little, the default is less")
	f.Var(&m.thread, "thread-memory", "most `BYTES` of memory for each thread; 0: no limit but "+
		"that for all")
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
		return usagef("--memory %v is below %v, and not 0", m.all, memory.Size(leastMemory))
	}
	if m.thread > 0 && m.thread < leastThread {
		return usagef("--thread-memory %v is below %v, and not 0", m.thread,
			memory.Size(leastThread))
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
		memory.KeepTo(int64(l.All / 2)) // the grammars are not on the collector's heap
		l.All -= processMemory
	}
	return l
}

// fit keeps the limit, if it was not given, within a part of what is allowed.
func (m *memoryFlags) fit(allowed, part memory.Size, given func(flag string) bool) error {
	if allowed == 0 || given("memory") {
		return nil
	}
	if allowed < leastMemory {
		return fmt.Errorf("keep to the %v of memory that the control group of this process "+
			"allows: have it allow %v or more", allowed, memory.Size(leastMemory))
	}
	m.all = min(m.all, allowed/part)
	return nil
}

// fitMemory keeps what was not given within what is allowed: a quarter is for what is recorded,
// half for the process itself, what it plans and prints included, and a sixteenth for the buffer.
// What is left is for its guard and the kernel, which has a second buffer of 4 MiB at most.
func (o *recordFlags) fitMemory(allowed memory.Size, given func(flag string) bool) error {
	if allowed == 0 {
		return nil
	}
	if err := o.memory.fit(allowed, 4, given); err != nil {
		return err
	}
	if !given("ring-size") {
		o.ring = memory.FitBuffer(o.ring, allowed)
	}
	return nil
}
