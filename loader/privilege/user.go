package privilege

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// startedByRoot says that root has started this process, or sudo: root may open every file already.
var startedByRoot = os.Getuid() == 0

// asUser is held by threads that act as the user. Who changes what all threads may do, excludes
// them: such a thread would get back what it has put away.
var asUser sync.RWMutex

// Suspend makes no capability of this process effective until Take or TakeAll, on all its threads:
// what is opened meanwhile is opened as the user who started it. Where root has started it,
// Suspend, Take, TakeAll and AsUser change nothing.
func Suspend() error {
	if startedByRoot {
		return nil
	}
	asUser.Lock()
	defer asUser.Unlock()
	rest := cap.GetProc()
	if err := rest.ClearFlag(cap.Effective); err != nil {
		return fmt.Errorf("put capabilities away: %w", err)
	}
	if err := rest.SetProc(); err != nil {
		return fmt.Errorf("put capabilities away: %w", err)
	}
	return nil
}

// Take ends Suspend: those capabilities are effective again, as far as this process was given them.
// It drops all others for good. Without arguments none is left.
func Take(caps ...cap.Value) error {
	if startedByRoot {
		return nil
	}
	asUser.Lock()
	defer asUser.Unlock()
	rest, err := permitted(caps)
	if err == nil {
		err = rest.SetProc()
	}
	if err != nil {
		return fmt.Errorf("take capabilities: %w", err)
	}
	return nil
}

// TakeAll ends Suspend: all capabilities that this process was given are effective again.
func TakeAll() error {
	if startedByRoot {
		return nil
	}
	asUser.Lock()
	defer asUser.Unlock()
	all := cap.GetProc()
	err := all.FillFlag(cap.Effective, all, cap.Permitted)
	if err == nil {
		err = all.SetProc()
	}
	if err != nil {
		return fmt.Errorf("take capabilities: %w", err)
	}
	return nil
}

// Has reports whether this process has a capability in effect.
func Has(c cap.Value) bool {
	has, err := cap.GetProc().GetFlag(cap.Effective, c)
	return err == nil && has
}

// Probing are the capabilities that putting further probes in takes: CAP_SYS_ADMIN too, where this
// process has not CAP_BPF.
func Probing() []cap.Value { return orAdmin(cap.BPF, cap.PERFMON) }

// Libraries are the capabilities that opening the libraries takes which another process maps:
// CAP_SYS_ADMIN too, where this process has not CAP_CHECKPOINT_RESTORE.
func Libraries() []cap.Value { return orAdmin(cap.CHECKPOINT_RESTORE, cap.DAC_READ_SEARCH) }

// orAdmin adds CAP_SYS_ADMIN, which was split, where this process has not the first of what it was
// split into.
func orAdmin(list ...cap.Value) []cap.Value {
	if !Has(list[0]) {
		list = append(list, cap.SYS_ADMIN)
	}
	return list
}

// permitted is the set of those capabilities that this process has of some, permitted and
// effective.
func permitted(caps []cap.Value) (*cap.Set, error) {
	have, rest := cap.GetProc(), cap.NewSet()
	for _, c := range caps {
		if has, err := have.GetFlag(cap.Permitted, c); err != nil || !has {
			continue // the kernel does not know it, or we never had it
		}
		for _, flag := range []cap.Flag{cap.Permitted, cap.Effective} {
			if err := rest.SetFlag(flag, true, c); err != nil {
				return nil, fmt.Errorf("keep %v: %w", c, err)
			}
		}
	}
	return rest, nil
}

// AsUser accesses files that the user has named, as that user: without capabilities. access runs
// on the caller's goroutine, which has the thread to itself meanwhile; what it starts on other
// goroutines has capabilities. It must not call AsUser, Take or Keep. Cost: some system calls.
func AsUser(access func() error) error {
	if startedByRoot {
		return access()
	}
	asUser.RLock()
	defer asUser.RUnlock()
	return withoutCapabilities(access)
}

// withoutCapabilities runs something on a thread without capabilities, which is the caller's alone
// meanwhile.
func withoutCapabilities(run func() error) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		return fmt.Errorf("look at capabilities: %w", err)
	}
	none := all
	none[0].Effective, none[1].Effective = 0, 0
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("put capabilities away: %w", err)
	}
	defer func() {
		if restoreErr := unix.Capset(&header, &all[0]); restoreErr != nil {
			err = errors.Join(err, fmt.Errorf("take capabilities back: %w", restoreErr))
		}
	}()
	return run()
}
