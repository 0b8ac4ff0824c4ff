package guard

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// raised counts who wants this process to be scheduled before others.
var raised struct {
	sync.Mutex
	times  int
	before int // the nice value that its threads have else
}

// RaisePriority has this process scheduled before others, with all its threads, for a goroutine
// that waits goes on in whichever the runtime takes, until restore is called, where we have the
// privilege (CAP_SYS_NICE). What is half done to a process that runs is to be done soon: each probe
// that goes into a busy one waits for its locks, and on a crowded machine thirty thousand of them
// for the scheduler each time. It may be called again before restore, by any goroutine. Cost: some
// system calls a thread.
func RaisePriority() (restore func()) {
	raised.Lock()
	defer raised.Unlock()
	if raised.times++; raised.times == 1 {
		const most = 20
		raised.before = 0
		if v, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 less the nice value
			raised.before = most - v
		}
		setNice(-most)
	}
	return sync.OnceFunc(func() {
		raised.Lock()
		defer raised.Unlock()
		if raised.times--; raised.times == 0 {
			setNice(raised.before) // which is lower, and nobody is denied
		}
	})
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
