package target

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ForkTimes are the CPU times of those processes that the process has forked, and that these have,
// by their numbers, that still run its program: others have called exec. Cost: some 20 us, and as
// much for each of them.
func (p *Process) ForkTimes() map[int]time.Duration {
	times := map[int]time.Duration{}
	program, err := os.Readlink(p.proc("exe"))
	if err != nil {
		return times
	}
	for list := childrenOf(p.PID); len(list) > 0; list = list[1:] {
		pid := list[0]
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err != nil || exe != program {
			continue
		}
		if used, err := cpuTimeOf(pid); err == nil {
			times[pid] = used
		}
		list = append(list, childrenOf(pid)...)
	}
	return times
}

// childrenOf lists the processes that one has started and that live.
func childrenOf(pid int) (list []int) {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // none, when it has ended
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// cpuTimeOf is what a process has used, all of its threads.
func cpuTimeOf(pid int) (time.Duration, error) {
	clock := int32(^pid)<<3 | 2 // as clock_getcpuclockid(3): its number and CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("read the clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
