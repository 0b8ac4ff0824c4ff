package coverage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/compress/wpp/covered"
	"wpptrace/loader/target"
)

// RunAll observes several processes at the same time, as Run does each, and merges what they have
// run. The functions of o may be called by several goroutines at the same time.
func RunAll(ctx context.Context, processes []*target.Process,
	o Options) (*covered.Coverage, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var left atomic.Int32
	left.Store(int32(len(processes)))
	confine := o.Confine
	o.Confine = func(files []string, keep ...cap.Value) error {
		if left.Add(-1) > 0 || confine == nil { // others have yet to put probes in
			return nil
		}
		return confine(files, keep...)
	}
	results, errs := make([]*covered.Coverage, len(processes)), make([]error, len(processes))
	var all sync.WaitGroup
	var turn sync.Mutex // one after the other: each takes CPUs, and is sampled
	for i, p := range processes {
		own := o
		own.Process = p
		all.Go(func() {
			turn.Lock()
			own.placed = turn.Unlock
			if results[i], errs[i] = Run(ctx, own); errs[i] != nil && !errors.Is(errs[i],
				target.ErrGone) {
				cancel()
			}
		})
	}
	all.Wait()
	c := &covered.Coverage{}
	var failed error
	for i, result := range results {
		switch {
		case errors.Is(errs[i], target.ErrGone): // before its probes stood
			continue
		case result == nil:
			return nil, errs[i]
		}
		failed = cmp.Or(failed, errs[i])
		if len(processes) == 1 {
			return result, failed
		}
		if err := c.Merge(result); err != nil {
			return nil, fmt.Errorf("merge what process %d has run: %w", processes[i].PID, err)
		}
	}
	return c, failed
}

// Named opens the processes whose command has a name, as pgrep -x has it, but for this one. There
// is one at least, or an error. The caller closes them.
func Named(name string) ([]*target.Process, error) {
	list, err := named(name)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("no process is called %q: ps -e lists them", name)
	}
	return list, err
}

func named(name string) (list []*target.Process, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		comm, err := os.ReadFile("/proc/" + e.Name() + "/comm")
		if err != nil || string(comm) != name+"\n" {
			continue
		}
		if p, err := target.Open(pid); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}
