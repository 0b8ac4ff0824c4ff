package privilege

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// Confine leaves this process, on all its threads and for good, with those capabilities alone, as
// far as it has them. It will make or replace files: where sudo has begun the
// process, and who called sudo may do that, it goes on as that user; where root has begun it, and
// it takes capabilities to do that, CAP_DAC_OVERRIDE and CAP_FOWNER stay too. Cost: some system
// calls. One goroutine calls it, once.
func Confine(files []string, keep ...cap.Value) error {
	if uid, gid, ok := caller(); ok && os.Geteuid() == 0 && as(uid, gid,
		func() bool { return mayReplace(files, uid) }) {
		if err := become(uid, gid); err != nil {
			return err
		}
	} else if uid := os.Geteuid(); startedByRoot &&
		!without(func() bool { return mayReplace(files, uid) }) {
		keep = append(keep, cap.DAC_OVERRIDE, cap.FOWNER)
	}
	return Keep(keep...)
}

// Renounce leaves this process, on all its threads and for good, without any capability, and as the
// one who called sudo, if anybody has. No program that it starts gets more. One goroutine calls it,
// once.
func Renounce() error {
	if uid, gid, ok := caller(); ok && os.Geteuid() == 0 {
		if err := become(uid, gid); err != nil {
			return err
		}
	}
	if _, err := cap.Prctlw(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keep what is started from getting more power: %w", err)
	}
	return Keep()
}

// become makes this process that of the user who called sudo, with the capabilities that it has.
func become(uid, gid int) error {
	if err := cap.SetGroups(gid); err != nil {
		return fmt.Errorf("become group %d, which called sudo: %w", gid, err)
	}
	if err := cap.SetUID(uid); err != nil {
		return fmt.Errorf("become user %d, who called sudo: %w", uid, err)
	}
	return nil
}

// Give makes the one who called sudo the owner of a file that this process has made, if it still
// may.
func Give(f *os.File) error {
	if uid, gid, ok := caller(); ok && os.Geteuid() == 0 {
		return f.Chown(uid, gid)
	}
	return nil
}

// caller is who called sudo, if anybody but root has.
func caller() (uid, gid int, ok bool) {
	uid, gid = idIn("SUDO_UID"), idIn("SUDO_GID")
	return uid, gid, uid > 0 && gid > 0
}

// idIn is the number of a user or group that a variable of the environment holds, else 0.
func idIn(variable string) int {
	const nobodys = math.MaxUint32 // to chown(2) and the like it says that nothing is to change
	id, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || id < 0 || id >= nobodys {
		return 0
	}
	return id
}

// as asks a question about files as another user. The thread is the caller's alone meanwhile.
func as(uid, gid int, ask func() bool) bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	group := setfs(unix.SYS_SETFSGID, gid)
	defer setfs(unix.SYS_SETFSGID, group)
	user := setfs(unix.SYS_SETFSUID, uid) // the capabilities for files go with it, and come back
	defer setfs(unix.SYS_SETFSUID, user)
	return ask()
}

// setfs sets the user, or group, by which files are accessed, and returns which it was.
func setfs(call uintptr, id int) (was int) {
	r, _, _ := syscall.RawSyscall(call, uintptr(id), 0, 0)
	return int(r)
}

// without asks a question about files as this user without capabilities. The thread is the caller's
// alone meanwhile.
func without(ask func() bool) (answer bool) {
	err := withoutCapabilities(func() error {
		answer = ask()
		return nil
	})
	return err == nil && answer
}

// mayReplace reports whether the calling thread, whose user is uid, may make or replace those
// files.
func mayReplace(files []string, uid int) bool {
	return !slices.ContainsFunc(files, func(name string) bool { return !mayReplaceOne(name, uid) })
}

func mayReplaceOne(name string, uid int) bool {
	dir := filepath.Dir(name)
	if unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil {
		return false
	}
	d, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if d.Mode()&fs.ModeSticky == 0 || owner(d) == uid {
		return true
	}
	f, err := os.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || err == nil && owner(f) == uid
}

// CheckReplace fails where this process could not put another file in the place of one that is
// there: that is marked immutable, or for appending alone, or another user's in a directory of the
// kind of /tmp.
func CheckReplace(path string) error {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0:
		return errors.New("what is there is a mount point")
	case st.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) != 0:
		return errors.New("what is there is marked never to be replaced: see chattr")
	}
	if owns, err := cap.GetProc().GetFlag(cap.Effective, cap.FOWNER); err == nil && owns {
		return nil
	}
	if !mayReplace([]string{path}, os.Geteuid()) {
		return errors.New("what is there is another user's, who alone may replace it")
	}
	return nil
}

// Seeing runs what looks at /proc/self/mem, which the kernel keeps from a process that has its
// capabilities by its file. It does so with reason: once they are given up, every process of its
// user could take it over.
func Seeing(look func()) {
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil && shown != 1 && unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0) == nil {
		// there is no way back to 2, which is as strict
		defer unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	look()
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

// Keep drops all other capabilities, on all threads of this process and for good. Other processes
// of its user cannot take it over all the same: what it has opened goes beyond what they may.
func Keep(keep ...cap.Value) error {
	asUser.Lock()
	defer asUser.Unlock()
	rest, err := permitted(keep)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep others from taking this process over: %w", err)
	}
	if err := rest.SetProc(); err != nil {
		return fmt.Errorf("give up capabilities: %w", err)
	}
	return nil
}
