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

// AnyCPU stands for no CPU in particular.
const AnyCPU = -1

// inPlaceOf makes a change to the memory of a process on the CPU that the process runs on: where
// our priority is higher, it waits there meanwhile. A probe that changes while the process runs on
// another CPU has to interrupt that, and waits for locks that the process takes: 10 to 25 us each,
// for as long as which the process crawls, instead of some 3 us.
func inPlaceOf(cpu int, change func() error) error {
	if cpu == AnyCPU {
		return change()
	}
	var before, there unix.CPUSet
	runtime.LockOSThread()
	if unix.SchedGetaffinity(0, &before) != nil {
		runtime.UnlockOSThread()
		return change()
	}
	there.Set(cpu)
	if unix.SchedSetaffinity(0, &there) != nil { // it is not ours to run on
		runtime.UnlockOSThread()
		return change()
	}
	err := change()
	if unix.SchedSetaffinity(0, &before) == nil {
		runtime.UnlockOSThread() // else the thread ends with its goroutine
	}
	return err
}

// CPUOf is the CPU that a thread of a process runs on; AnyCPU: none runs, or one that may keep ours
// from running there. Cost: some 10 us a thread, of some of them at most.
func CPUOf(pid int) int {
	const most = 32 // threads that are looked at
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return AnyCPU
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(most)
	for _, tid := range threads {
		text, err := os.ReadFile(filepath.Join(dir.Name(), tid, "stat"))
		if err != nil {
			continue
		}
		if cpu, ok := runsOn(string(text)); ok {
			return cpu
		}
	}
	return AnyCPU
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
