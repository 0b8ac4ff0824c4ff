package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is a running process. Its names have \n and the like for what cannot be printed.
type Process struct {
	PID  int
	Comm string // the name of its command, as ps and pgrep have it
	File string // the executable's base name
	// for messages: Comm and, where its file is called otherwise, File: "redis-server, file
	// redis-check-rdb"
	Name string
	fd   int // of a pidfd, which distinguishes it from a later process with its number
}

// Errors that say what is wrong with a target.
var (
	ErrNoProcess    = errors.New("no such process")
	ErrKernelThread = errors.New("it is a kernel thread, which has no program to trace: ps shows " +
		"such in [brackets]")
	ErrGone     = errors.New("it has exited")
	ErrHeadless = errors.New("its first thread has ended, others go on (pthread_exit in " +
		"main): the kernel puts no probes into such a process")
	ErrReplaced  = errors.New("it has just called exec: try again to trace what it is now")
	ErrOtherProc = errors.New("/proc is another pid namespace's, in which processes have " +
		"other numbers: " +
		"run wpptrace where /proc is its own, on the host as a rule")
)

// Open takes hold of a process by its number.
func Open(pid int) (*Process, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("open process %d: %w: their numbers are positive", pid, ErrNoProcess)
	}
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("open process %d: %w", pid, ErrOtherProc)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return nil, fmt.Errorf("open process %d: %w: %s", pid, ErrNoProcess, lookForIt)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil, fmt.Errorf("open process %d: %w: %w", pid, ErrNoProcess, ofProcess(pid))
	case err != nil:
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	p := &Process{PID: pid, fd: fd}
	if err := p.identify(); err != nil {
		p.Close()
		return nil, fmt.Errorf("open process %d: %w", pid, err)
	}
	return p, nil
}

const lookForIt = "look for it with ps or pgrep"

// ofProcess says whose a thread is. The number may also be that of a group whose first process has
// ended, on older kernels.
func ofProcess(tid int) error {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return errors.New(lookForIt)
	}
	_, of, _ := strings.Cut(string(status), "\nTgid:")
	var pid int
	if _, err := fmt.Sscan(of, &pid); err != nil {
		return errors.New(lookForIt)
	}
	return &ThreadError{PID: pid, TID: tid}
}

// A ThreadError says that a number is a thread's and not a process's. The thread can be recorded
// alone.
type ThreadError struct{ PID, TID int }

func (e *ThreadError) Error() string { return fmt.Sprintf("it is a thread of process %d", e.PID) }

func (p *Process) identify() error {
	s, err := p.stat()
	if err != nil {
		return err
	}
	if s.state == 'Z' || s.state == 'X' {
		return p.WhyGone()
	}
	exe, err := os.Readlink(p.proc("exe"))
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read its executable: %w: %s", err, remedy(mayTrace()))
	case errors.Is(err, fs.ErrNotExist) && s.kernel:
		return ErrKernelThread
	case errors.Is(err, fs.ErrNotExist):
		return p.WhyGone()
	case err != nil:
		return fmt.Errorf("read its executable: %w", err)
	}
	p.nameIt(p.ThreadName(p.PID), filepath.Base(p.pathOf(p.proc("exe"), exe)))
	return nil
}

// nameIt sets the names, by that of the first thread, of which the kernel keeps 15 bytes, and the
// executable's.
func (p *Process) nameIt(comm, file string) {
	const kept = 15
	if comm == "" || len(comm) == kept && strings.HasPrefix(file, comm) {
		comm = file
	}
	p.Comm, p.File = printable(comm), printable(file)
	if p.Name = p.Comm; comm != file {
		p.Name += ", file " + p.File
	}
}

// pathOf is the path of the file that a link of the process in /proc leads to, by the link's text:
// of a file that is gone the kernel adds " (deleted)" to the text, but a name may end in that too.
func (p *Process) pathOf(link, text string) string {
	path, marked := strings.CutSuffix(text, " (deleted)")
	if !marked {
		return text
	}
	of, err := os.Stat(link)
	if err != nil {
		return path
	}
	if there, err := os.Lstat(p.proc("root") + text); err == nil && os.SameFile(of, there) {
		return text
	}
	return path
}

// printable is a name that neither ends a line nor steers a terminal: a process may have its file
// called anything.
func printable(name string) string {
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

// remedy says what to do about a process that may not be looked at. privileged is mayTrace.
func remedy(privileged bool) string {
	if !privileged {
		return "run wpptrace as root, with CAP_SYS_PTRACE"
	}
	return "wpptrace has the privilege, but a sandbox around it or a security module (Landlock, " +
		"SELinux, AppArmor ...) forbids it: run wpptrace outside"
}

// mayTrace reports whether we have CAP_SYS_PTRACE, with which all processes but those of other
// sandboxes may be looked at.
func mayTrace() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData // of 32 capabilities each
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective>>unix.CAP_SYS_PTRACE&1 == 1
}

func (p *Process) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.PID, name) }

// Close lets go of the process, which runs on. It is no longer Alive to us.
func (p *Process) Close() {
	if p.fd >= 0 {
		unix.Close(p.fd)
		p.fd = -1
	}
}

// Alive reports whether the process, not a later one with its number, still runs: any of its
// threads.
func (p *Process) Alive() bool { return p.fd >= 0 && !p.Wait(0) }

// WhyGone says why the process has no memory that could be looked at: it has exited, or is about
// to, or its first thread has. Cost: where others live on 0.1 s, in which they too may come to
// their end.
func (p *Process) WhyGone() error {
	const exiting = 100 * time.Millisecond
	if p.Wait(exiting) {
		return ErrGone
	}
	if s, err := p.stat(); err != nil || s.state != 'Z' {
		return ErrGone
	}
	return ErrHeadless
}

// Wait waits until the process has exited, or for a time, if that is above 0. It reports whether it
// has.
func (p *Process) Wait(limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(fds, int(max(limit, 0).Milliseconds())) // below 0 it would have no end
	return n > 0
}

// Signal sends a signal to the process, not to a later one with its number.
func (p *Process) Signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, p.PID, err)
	}
	return nil
}

// Reach takes hold of a process by its number for its signals alone: it is not looked at.
func Reach(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("reach process %d: %w", pid, err)
	}
	return &Process{PID: pid, fd: fd}, nil
}

// Executable opens the file that the process runs, deleted or not.
func (p *Process) Executable() (*os.File, error) {
	f, err := os.Open(p.proc("exe"))
	if errors.Is(err, os.ErrNotExist) { // it has no memory any more, and so no program
		err = p.WhyGone()
	}
	if err != nil {
		return nil, fmt.Errorf("open the executable of process %d: %w", p.PID,
			explainFUSE(p.proc("exe"), err))
	}
	return f, nil
}

// explainFUSE adds to the error of opening a link of /proc what a user can do where the file is in
// a FUSE file system, which as a rule is closed to all but the user who has mounted it, root
// included.
func explainFUSE(link string, err error) error {
	var st unix.Statfs_t
	if errors.Is(err, fs.ErrPermission) && unix.Statfs(link, &st) == nil &&
		st.Type == unix.FUSE_SUPER_MAGIC {
		return fmt.Errorf("%w: it is in a FUSE file system that only the user who mounted it may "+
			"read, not even root: "+
			"mount that with -o allow_other, or run the program from another place", err)
	}
	return err
}

// Runs reports whether the process runs the program of that file, one that Executable opened,
// still.
func (p *Process) Runs(exe *os.File) (bool, error) {
	before, err := exe.Stat()
	if err != nil {
		return false, fmt.Errorf("look at the executable of process %d: %w", p.PID, err)
	}
	now, err := os.Stat(p.proc("exe"))
	if err != nil {
		return false, fmt.Errorf("look at the executable of process %d: %w", p.PID, err)
	}
	return os.SameFile(before, now), nil
}

// ReadMemory fills b with what is at an address of the process. It takes no more than
// CAP_SYS_PTRACE, where /proc/PID/mem asks for the right to read others' files too. A process may
// keep its memory from being read, by userfaultfd or a file system of its own: no signal ends the
// wait then but one that kills us.
func (p *Process) ReadMemory(b []byte, address uint64) error {
	for done := 0; done < len(b); {
		part := b[done:]
		local := []unix.Iovec{{Base: &part[0], Len: uint64(len(part))}}
		remote := []unix.RemoteIovec{{Base: uintptr(address) + uintptr(done), Len: len(part)}}
		n, err := unix.ProcessVMReadv(p.PID, local, remote, 0)
		if err == nil && n == 0 {
			err = unix.EFAULT
		}
		if err != nil {
			return fmt.Errorf("read the memory of process %d at %x: %w", p.PID,
				address+uint64(done), err)
		}
		done += n
	}
	return nil
}

// A Run is what a process does from one exec to the next.
type Run struct{ maps *os.File }

// Run takes hold of what the process does now. The caller closes it.
func (p *Process) Run() (*Run, error) {
	f, err := os.Open(p.proc("maps"))
	if err != nil {
		return nil, fmt.Errorf("open the memory map of process %d: %w", p.PID, err)
	}
	return &Run{f}, nil
}

// Over reports whether the process has called exec since, or has exited: memory that is gone has no
// mappings.
func (r *Run) Over() bool {
	_, err := r.maps.ReadAt(make([]byte, 1), 0)
	return errors.Is(err, io.EOF)
}

// Close lets go of it.
func (r *Run) Close() { r.maps.Close() }

// Times is what a process has used, user and system, all threads, those that ended included: CPU
// time, and of it that in user mode. The latter goes in steps of 10 ms, and where the kernel
// accounts by clock ticks it is a sample.
type Times struct {
	CPU, User time.Duration
}

// Sub is what was used since.
func (t Times) Sub(before Times) Times { return Times{t.CPU - before.CPU, t.User - before.User} }

// Times returns what the process has used so far; a child may have ended, but must not have been
// waited for.
func (p *Process) Times() (Times, error) {
	used, err := cpuTimeOf(p.PID)
	if err != nil {
		return Times{}, err
	}
	s, err := p.stat()
	if err != nil {
		return Times{}, err
	}
	return Times{CPU: used, User: s.user}, nil
}

// ShadowStack reports whether the process runs with a CET shadow stack.
func (p *Process) ShadowStack() (bool, error) {
	b, err := os.ReadFile(p.proc("status"))
	if err != nil {
		return false, fmt.Errorf("read the status of process %d: %w", p.PID, err)
	}
	return hasShadowStack(string(b)), nil
}

// hasShadowStack reads /proc/PID/status (Documentation/arch/x86/shstk.rst of the kernel).
func hasShadowStack(status string) bool {
	for line := range strings.Lines(status) {
		if features, ok := strings.CutPrefix(line, "x86_Thread_features:"); ok {
			return slices.Contains(strings.Fields(features), "shstk")
		}
	}
	return false
}

// Command is the command line.
func (p *Process) Command() []string {
	b, err := os.ReadFile(p.proc("cmdline"))
	if err != nil || len(b) == 0 {
		return []string{p.Comm}
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// Threads lists the thread ids.
func (p *Process) Threads() ([]int, error) {
	entries, err := os.ReadDir(p.proc("task"))
	if err != nil {
		return nil, fmt.Errorf("list the threads of process %d: %w", p.PID, err)
	}
	var ids []int
	for _, e := range entries {
		if id, err := strconv.Atoi(e.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// HasThread reports whether the process has a thread of this id.
func (p *Process) HasThread(tid int) bool {
	_, err := os.Lstat(p.proc(fmt.Sprintf("task/%d", tid)))
	return err == nil
}

// Stopped reports whether all threads are stopped, or at their end. Cost: some 10 us for each that
// is.
func (p *Process) Stopped() bool { return p.allAre("TtZX") }

// Sleeping reports whether all threads sleep, so that a signal would wake them (state S), or are at
// their end: none that waits for a disk or for memory's locks (D), or is stopped (T). Cost: some 10
// us for each that does.
func (p *Process) Sleeping() bool { return p.allAre("SZX") }

// Runnable reports whether a thread runs or waits for a CPU (state R), or the process is gone.
// Cost: some 10 us for each that does not.
func (p *Process) Runnable() bool { return !p.allAre("SDTtZXI") }

// allAre reports whether each thread is in one of some states, as in /proc/PID/stat; false, if
// there is none.
func (p *Process) allAre(states string) bool {
	ids, err := p.Threads()
	if err != nil || len(ids) == 0 {
		return false
	}
	for _, id := range ids {
		b, err := os.ReadFile(p.proc(fmt.Sprintf("task/%d/stat", id)))
		if err != nil {
			continue // it is gone
		}
		if s, err := parseStat(b); err != nil || !strings.ContainsRune(states, rune(s.state)) {
			return false
		}
	}
	return true
}

// ThreadName is the name of a thread, "" if it is gone.
func (p *Process) ThreadName(tid int) string {
	b, _ := os.ReadFile(p.proc(fmt.Sprintf("task/%d/comm", tid)))
	return strings.TrimSuffix(string(b), "\n")
}

// Descendants lists the processes that the process has started, and those that these have, in no
// order, as far as their parents still live. Cost: some 10 us for each process that there is.
func (p *Process) Descendants() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if s, err := (&Process{PID: pid}).stat(); err == nil && s.state != 'Z' && s.state != 'X' {
			children[s.parent] = append(children[s.parent], pid)
		}
	}
	pids = slices.Clone(children[p.PID])
	for i := 0; i < len(pids); i++ {
		pids = append(pids, children[pids[i]]...)
	}
	return pids
}

type stat struct {
	state  byte
	parent int
	kernel bool
	user   time.Duration
}

// kernelThread is PF_KTHREAD of include/linux/sched.h.
const kernelThread = 0x00200000

// clockTick is the unit of times in /proc: USER_HZ is 100.
const clockTick = 10 * time.Millisecond

func (p *Process) stat() (stat, error) {
	b, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return stat{}, ErrGone
	}
	s, err := parseStat(b)
	if err != nil {
		return stat{}, fmt.Errorf("read %s: %w", p.proc("stat"), err)
	}
	return s, nil
}

// parseStat reads /proc/PID/stat (proc_pid_stat(5)). The name in it may hold anything.
func parseStat(b []byte) (stat, error) {
	// fields, counted from 1; the one after the name is the third
	const parent, flags, user = 4, 9, 14
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < user-2 {
		return stat{}, fmt.Errorf("%d fields after the name", len(f))
	}
	number := func(field int) (uint64,
		error) {
		return strconv.ParseUint(string(f[field-3]), 10, 64)
	}
	of, err := number(parent)
	if err != nil {
		return stat{}, fmt.Errorf("parent: %w", err)
	}
	flag, err := number(flags)
	if err != nil {
		return stat{}, fmt.Errorf("flags: %w", err)
	}
	ticks, err := number(user)
	if err != nil {
		return stat{}, fmt.Errorf("time in user mode: %w", err)
	}
	return stat{state: f[0][0], parent: int(of), kernel: flag&kernelThread != 0,
		user: time.Duration(ticks) * clockTick}, nil
}
