package truth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options say what to run and how.
type Options struct {
	Path  string   // the executable, or a script with a #! line: then its interpreter is the image
	Args  []string // the arguments, without the program's name
	Env   []string // nil: this process's environment
	Dir   string   // "": the current directory
	Stdin []byte

	// Limit is the most steps to make, in libraries too; 0 is no limit. A run that reaches it is
	// killed and gives ErrLimit.
	Limit int
	// FixedAddresses turns address randomisation off: the C library in a static program branches on
	// address bits.
	FixedAddresses bool
	// StepAll single-steps libraries too, where otherwise int3 bytes in the image's text wait for
	// control to come back. It is slower by as much as libraries execute; the result is the same.
	StepAll bool
	// Libraries are the base names of shared libraries that are recorded as well, by their
	// addresses as Placed makes them.
	Libraries []string
	// Stack has stack pointers noted. It costs a hundredth more.
	Stack bool
	// Values records registers and memory operands at each step, in Thread.Values. It needs
	// objdump, and costs 3 us a step.
	Values bool
	// Within are, with Values, all that is recorded: those that are Traced. nil: all.
	Within Routines
	// Most ends the run, as killing it does, when so many instructions of the image have been
	// recorded; 0: nothing does.
	Most int
}

// ErrLimit is the error of a run that was longer than Options.Limit.
var ErrLimit = errors.New("step limit reached")

// Run executes the program under ptrace, from its exec to its exit, or to the exec of another file.
// Its standard streams are pipes. When ctx ends the program is killed; Run returns when all
// processes that hold its output have closed it. The program sees one CPU in its affinity, and
// leads its process group. It costs 10 to 35 us an instruction of the image. Calls may run side by
// side: each has an OS thread of its own. From the first call on, this process gets no SIGCHLD any
// more when a child stops.
func Run(ctx context.Context, opt Options) (*Trace, error) {
	type result struct {
		trace *Trace
		err   error
	}
	done := make(chan result)
	go func() {
		// ptrace requests must come from the thread that started the child. It is never unlocked,
		// so that it ends with this goroutine, and its personality with it.
		runtime.LockOSThread()
		trace, err := run(ctx, opt)
		done <- result{trace, err}
	}()
	r := <-done
	if r.err != nil {
		return nil, fmt.Errorf("single-step %s: %w", opt.Path, r.err)
	}
	return r.trace, nil
}

func run(ctx context.Context, opt Options) (*Trace, error) {
	if err := waitUnsignalled(); err != nil {
		return nil, err
	}
	if err := stayOnOneCPU(); err != nil {
		return nil, err
	}
	if opt.FixedAddresses {
		const addrNoRandomize = 0x0040000
		if _, _, e := unix.Syscall(unix.SYS_PERSONALITY, addrNoRandomize, 0, 0); e != 0 {
			return nil, fmt.Errorf("turn address randomisation off: %w", e)
		}
	}
	streams, err := openStreams(opt.Stdin)
	if err != nil {
		return nil, err
	}
	pid, err := start(opt, streams)
	streams.started()
	if err != nil {
		streams.wait()
		return nil, err
	}
	s := &stepper{pid: pid, limit: opt.Limit, most: opt.Most, stepAll: opt.StepAll,
		libs: opt.Libraries, stack: opt.Stack, trace: &Trace{Exit: -1}}
	if opt.Values {
		s.valuer = &valuer{within: opt.Within}
	}
	stop := killWhenDone(ctx, pid)
	err = s.run()
	stop()
	s.close()
	s.trace.Stdout, s.trace.Stderr = streams.wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.trace, err
}

// waitUnsignalled turns off the signals that stops of children send to this process: each would run
// the runtime's handler, on a thread that has to be woken, while the stepping thread waits for the
// stop itself.
var waitUnsignalled = sync.OnceValue(func() error {
	const noChildStop = 1                                      // SA_NOCLDSTOP
	var action struct{ handler, flags, restorer, mask uint64 } // as the kernel has it
	set := func(to, from unsafe.Pointer) error {
		if _, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(to),
			uintptr(from), unsafe.Sizeof(action.mask), 0, 0); e != 0 {
			return fmt.Errorf("turn off signals of children that stop: %w", e)
		}
		return nil
	}
	if err := set(nil, unsafe.Pointer(&action)); err != nil {
		return err
	}
	action.flags |= noChildStop
	return set(unsafe.Pointer(&action), nil)
})

// stayOnOneCPU keeps the calling thread, and the program that it starts, on the CPU that it is on:
// to wake the other side on another CPU after each step would cost three times as much.
func stayOnOneCPU() error {
	var cpu uint32
	if _, _, e := unix.Syscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0); e != 0 {
		return fmt.Errorf("ask for current CPU: %w", e)
	}
	var one unix.CPUSet
	one.Set(int(cpu))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("set CPU affinity: %w", err)
	}
	return nil
}

// start forks the program, stopped at its exec.
func start(opt Options, streams *streams) (pid int, err error) {
	env := opt.Env
	if env == nil {
		env = os.Environ()
	}
	pid, err = syscall.ForkExec(opt.Path, append([]string{opt.Path}, opt.Args...),
		&syscall.ProcAttr{
			Dir:   opt.Dir,
			Env:   env,
			Files: streams.fds(),
			Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
		})
	if err != nil {
		return 0, fmt.Errorf("start program: %w", err)
	}
	return pid, nil
}

// killWhenDone kills the process when ctx ends. A pidfd, so that no later process of the same
// number is hit.
func killWhenDone(ctx context.Context, pid int) (stop func()) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return func() {}
	}
	var mu sync.Mutex
	cancel := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if fd >= 0 {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		}
	})
	return func() {
		cancel()
		mu.Lock()
		defer mu.Unlock()
		unix.Close(fd)
		fd = -1
	}
}

// streams are the program's standard streams, each a pipe.
type streams struct {
	theirs, ours   [3]*os.File
	copies         sync.WaitGroup
	stdout, stderr bytes.Buffer
}

func openStreams(stdin []byte) (*streams, error) {
	s := &streams{}
	for i := range s.theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("open pipe for standard stream %d: %w", i, err)
		}
		if i == 0 {
			s.theirs[i], s.ours[i] = r, w
		} else {
			s.theirs[i], s.ours[i] = w, r
		}
	}
	s.copies.Go(func() {
		_, _ = s.ours[0].Write(stdin) // a program need not read its input
		s.ours[0].Close()
	})
	s.copies.Go(func() { _, _ = io.Copy(&s.stdout, s.ours[1]) })
	s.copies.Go(func() { _, _ = io.Copy(&s.stderr, s.ours[2]) })
	return s, nil
}

func (s *streams) fds() []uintptr {
	return []uintptr{s.theirs[0].Fd(), s.theirs[1].Fd(), s.theirs[2].Fd()}
}

// started closes the program's ends, so that reading ends with the program.
func (s *streams) started() {
	for _, f := range s.theirs {
		f.Close()
	}
}

// wait returns the output once every process that inherited the streams has closed them.
func (s *streams) wait() (stdout, stderr []byte) {
	s.copies.Wait()
	s.ours[1].Close()
	s.ours[2].Close()
	return s.stdout.Bytes(), s.stderr.Bytes()
}
