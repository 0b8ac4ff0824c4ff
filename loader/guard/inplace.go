package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inPlaceOf makes a change to the memory of a process on the CPU that the process runs on: with our
// priority it waits there meanwhile, as a rule. A probe that changes while the process runs on
// another CPU has to interrupt that, and waits for locks that the process takes: 10 to 25 us each,
// for as long as which the process crawls, instead of some 3 us.
func inPlaceOf(pid int, change func() error) error {
	cpu, ok := cpuOf(pid)
	if !ok {
		return change()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, there unix.CPUSet
	if unix.SchedGetaffinity(0, &before) != nil {
		return change()
	}
	there.Set(cpu)
	if unix.SchedSetaffinity(0, &there) != nil { // it is not ours to run on
		return change()
	}
	defer unix.SchedSetaffinity(0, &before)
	return change()
}

// cpuOf is the CPU that a thread of a process runs on; false: none runs, or one that may keep ours
// from running there.
func cpuOf(pid int) (cpu int, ok bool) {
	const most = 64 // threads that are looked at
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*/stat", pid))
	if err != nil {
		return 0, false
	}
	for _, path := range threads[:min(most, len(threads))] {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if cpu, ok := runsOn(string(text)); ok {
			return cpu, true
		}
	}
	return 0, false
}

// runsOn is the CPU that a thread runs on, by its line of proc_pid_stat(5).
func runsOn(stat string) (cpu int, ok bool) {
	const state, processor, policy, fields = 0, 36, 38, 39 // behind the name
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) < fields || f[state] != "R" || f[policy] != strconv.Itoa(unix.SCHED_NORMAL) {
		return 0, false
	}
	cpu, err := strconv.Atoi(f[processor])
	return cpu, err == nil && cpu >= 0
}
