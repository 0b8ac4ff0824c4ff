package guard

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/loader/privilege"
)

// priority counts who wants this process to be scheduled before others, and who wants it to be
// scheduled behind them.
var priority struct {
	sync.Mutex
	raised, lowered int
	before          int // the nice value that its threads have else
}

const (
	first = -20 // the nice value of what is scheduled before others
	last  = 19  // the largest there is
	// what is added to have a quarter of a CPU that another wants
	behind = 5
)

// RaisePriority has this process scheduled before others, with all its threads, for a goroutine
// that waits goes on in whichever the runtime takes, until restore is called, where we have the
// privilege (CAP_SYS_NICE). What is half done to a process that runs is to be done soon: each probe
// that goes into a busy one waits for its locks, and on a crowded machine thirty thousand of them
// for the scheduler each time. It may be called again before restore, by any goroutine. Cost: some
// system calls a thread.
func RaisePriority() (restore func()) { return changePriority(&priority.raised) }

// LowerPriority has this process scheduled behind others, as RaisePriority has it scheduled before
// them, which comes first. What takes long, and can wait, is not to hold up a process that is at
// work. Without the privilege nothing is done, for it could not be undone.
func LowerPriority() (restore func()) {
	if !privilege.Has(cap.SYS_NICE) {
		return func() {}
	}
	return changePriority(&priority.lowered)
}

func changePriority(who *int) (restore func()) {
	priority.Lock()
	defer priority.Unlock()
	if priority.raised+priority.lowered == 0 {
		priority.before = ownNice()
	}
	change := func(by int) {
		was := wantedNice()
		*who += by
		if nice := wantedNice(); nice != was {
			setNice(nice)
		}
	}
	change(1)
	return sync.OnceFunc(func() {
		priority.Lock()
		defer priority.Unlock()
		change(-1)
	})
}

// wantedNice is the nice value by who wants what.
func wantedNice() int {
	switch {
	case priority.raised > 0:
		return first
	case priority.lowered > 0:
		return min(priority.before+behind, last)
	}
	return priority.before
}

// ownNice is the nice value of the calling thread.
func ownNice() int {
	const most = 20
	v, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the nice value
	if err != nil {
		return 0
	}
	return most - v
}

// setNice sets the nice value of all threads, as far as that is allowed. Those that begin later
// have that of the one that begins them; so it is done until there are none.
func setNice(nice int) {
	done := map[string]bool{}
	for more := true; more; {
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || done[t.Name()] {
				continue
			}
			done[t.Name()], more = true, true
			if unix.Setpriority(unix.PRIO_PROCESS, id, nice) == unix.EACCES {
				return
			}
		}
	}
}
