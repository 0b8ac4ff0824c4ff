package processor

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a run takes and where: the same as in child.c.
const (
	MostCases = 1024
	MostCode  = 512 - leaving // bytes
	Window    = 1024          // bytes of memory, at WindowAt
	WindowAt  = 0x10201000 - Window/2
	CodeAt    = 0x10000000

	codeSize = 512
	leaving  = 14 // bytes of the jump at the end
	noCase   = 1<<32 - 1
	size     = 4096 + MostCases*(4096+codeSize)
)

// A State is the processor's registers. Its layout is that of child.c.
type State struct {
	Registers [16]uint64 // by hardware number
	Flags     uint64
	MXCSR     uint32
	Signal    uint32 // of the exception that has ended a case; 0: none
	RIP       uint64 // of the instruction that has raised it
	code      uint64
	Vectors   [16][32]byte
}

// A Case is a sequence of instructions, and memory, from WindowAt on, before and behind it.
type Case struct {
	Before, After State
	Data          [2][Window]byte
	Code          []byte // it is run at CodeOf the case's index
	Endless       bool   // it did not end
}

// CodeOf is where a case's code lies.
func CodeOf(index int) uint64 { return CodeAt + uint64(index)*codeSize }

type slot struct {
	before, after State
	data          [2][Window]byte
	_             [4096 - 2*unsafe.Sizeof(State{}) - 2*Window]byte
}

type shared struct {
	goes, done   uint32
	first, count uint32
	at           uint32
	leave        uint64
	_            [4096 - 32]byte
	slots        [MostCases]slot
	code         [MostCases][codeSize]byte
}

//go:embed child/child.c
var source []byte

// A Processor runs cases. It belongs to one goroutine.
type Processor struct {
	program  string
	memory   []byte
	shared   *shared
	file     *os.File
	child    *exec.Cmd
	ended    <-chan error // how the child has ended
	handOver uint32
	lost     int // children that did not run
}

// Start compiles the child, which stays in the directory, and starts it.
func Start(dir string) (*Processor, error) {
	p := &Processor{program: filepath.Join(dir, "child")}
	if err := os.WriteFile(p.program+".c", source, 0o600); err != nil {
		return nil, fmt.Errorf("compile the child: %w", err)
	}
	out, err := exec.Command("gcc", "-O1", "-mavx", "-no-pie", "-static", "-o", p.program,
		p.program+".c").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("compile the child: %w: %s", err, out)
	}
	fd, err := unix.MemfdCreate("cases", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory for cases: %w", err)
	}
	p.file = os.NewFile(uintptr(fd), "cases")
	if err := p.file.Truncate(size); err != nil {
		return nil, errors.Join(fmt.Errorf("make memory for cases: %w", err), p.file.Close())
	}
	p.memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map memory for cases: %w", err), p.file.Close())
	}
	p.shared = (*shared)(unsafe.Pointer(&p.memory[0]))
	if err := p.begin(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// begin starts a child.
func (p *Processor) begin() error {
	p.handOver, p.shared.goes, p.shared.done = 0, 0, 0
	p.child = exec.Command(p.program)
	p.child.ExtraFiles = []*os.File{p.file}
	if err := p.child.Start(); err != nil {
		return fmt.Errorf("start the child: %w", err)
	}
	child, ended := p.child, make(chan error, 1)
	go func() { ended <- child.Wait() }()
	p.ended = ended
	return p.wait()
}

// What wait gives of a child that does not answer: it runs on, or it does not run.
var (
	errEndless = errors.New("the child does not come to an end")
	errLost    = errors.New("the child does not run")
)

// A case may take patience of CPU time, and the machine may be busy with other things for as long
// as busy.
const (
	patience = 3 * time.Second
	busy     = 60 * time.Second
	mostLost = 5 // children of a Processor that do not run
	mostLeft = 8 // children of a Run that did not come to its end
)

// wait waits until the child has done what it was given. It wakes the child each time anew: on a
// virtual machine a wake-up can get lost.
func (p *Processor) wait() error {
	p.handOver++
	since, used, at := time.Now(), p.used(), atomic.LoadUint32(&p.shared.at)
	for {
		done := atomic.LoadUint32(&p.shared.done)
		if done == p.handOver {
			return nil
		}
		wake(&p.shared.goes)
		second := unix.Timespec{Nsec: 1e8}
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.shared.done)), 0,
			uintptr(done), uintptr(unsafe.Pointer(&second)), 0, 0)
		if now := atomic.LoadUint32(&p.shared.at); now != at {
			since, used, at = time.Now(), p.used(), now
		}
		select {
		case err := <-p.ended:
			p.child = nil
			return fmt.Errorf("the child has ended: %v", err)
		default:
		}
		switch {
		case p.used()-used > patience:
			return errEndless
		case time.Since(since) > busy:
			return errLost
		}
	}
}

// used is the CPU time that the child has used.
func (p *Processor) used() time.Duration {
	var t unix.Timespec
	clock := int32(^p.child.Process.Pid<<3 | 2) // its CPU clock: clock_getcpuclockid(3)
	if unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// wake wakes who waits for a word.
func wake(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 1, 1, 0, 0, 0)
}

// end ends the child.
func (p *Processor) end() error {
	if p.child == nil {
		return nil
	}
	err := p.child.Process.Kill()
	<-p.ended // it was killed
	p.child = nil
	return err
}

// Run runs at most MostCases cases. A case that does not end is run twice. Run fails if the child
// cannot go on, for which a case is to blame only if it writes to memory that is not its own.
func (p *Processor) Run(cases []*Case) error {
	for i, c := range cases {
		s := &p.shared.slots[i]
		s.before, s.data[0] = c.Before, c.Data[0]
		s.before.code = CodeOf(i)
		code := append(append([]byte{}, c.Code...), 0xff, 0x25, 0, 0, 0, 0) // jmp *(%rip)
		leave := p.shared.leave
		for range 8 {
			code = append(code, byte(leave))
			leave >>= 8
		}
		if copy(p.shared.code[i][:], code) < len(code) {
			return fmt.Errorf("run a case: %d bytes of code are too many", len(c.Code))
		}
	}
	p.shared.first, p.shared.count = 0, uint32(len(cases))
	tried := -1 // the case that was run once in vain
	for left := 0; ; left++ {
		atomic.StoreUint32(&p.shared.at, noCase)
		atomic.StoreUint32(&p.shared.goes, p.handOver)
		wake(&p.shared.goes)
		reason := p.wait()
		if reason == nil {
			break
		}
		at := int(atomic.LoadUint32(&p.shared.at))
		if reason == errLost {
			p.lost++
		}
		if p.lost == mostLost || left == mostLeft {
			return fmt.Errorf("run cases: %w (%d lost, %d left, at case %d)", reason, p.lost, left,
				at)
		}
		if err := errors.Join(p.end(), p.begin()); err != nil {
			return fmt.Errorf("run cases: %w: %w", reason, err)
		}
		switch {
		case at == noCase: // it had not begun
		case at == tried:
			cases[at].Endless = true
			p.shared.first = uint32(at + 1)
		default:
			p.shared.first, tried = uint32(at), at
		}
	}
	for i, c := range cases {
		s := &p.shared.slots[i]
		c.After, c.Data[1] = s.after, s.data[1]
	}
	return nil
}

// Close ends the child.
func (p *Processor) Close() error {
	return errors.Join(p.end(), unix.Munmap(p.memory), p.file.Close())
}
