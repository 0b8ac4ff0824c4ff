package main

import (
	"runtime/debug"

	"github.com/spf13/pflag"

	"wpptrace/compress/spill"
)

// memoryFlags bound the memory of what is recorded.
type memoryFlags struct{ all, thread size }

func defaultMemory() memoryFlags { return memoryFlags{all: 1 << 30} }

func (m *memoryFlags) add(f *pflag.FlagSet) {
	f.Var(&m.all, "memory", "most `BYTES` of memory for what is recorded, as 256M; what is beyond goes to the snapshot's file meanwhile, which gets larger; 0: no limit")
	f.Var(&m.thread, "thread-memory", "most `BYTES` of memory for each thread; 0: no limit but that for all")
}

const (
	// leastMemory is what suffices for compressing anything.
	leastMemory = 64 << 20
	// leastThread is the least limit of a thread: with less, segments hold next to nothing, and are all tables.
	leastThread = 64 << 10
	// processMemory is what a process takes besides what it records: its code, the buffers of writing, and what the collector has not taken yet.
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
		debug.SetMemoryLimit(int64(l.All / 2)) // of the collector: the grammars are not on its heap
		l.All -= processMemory
	}
	return l
}
