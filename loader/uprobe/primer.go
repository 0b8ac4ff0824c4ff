package uprobe

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// A Primer has the kernel change probes at once. The kernel holds a lock for each change, of all
// processes, that fork takes too, and cheaply, as long as nobody changes any: the first change
// after a while waits for an RCU grace period, some 8 to 20 ms, and longer on a busy machine.
// Others that follow within some 10 ms do not. So a Primer changes a probe where no process runs,
// before those change that a process is not to be held up by. One goroutine uses it at a time.
type Primer struct {
	mechanism Mechanism
	program   *ebpf.Program
	file      *os.File // that nobody runs

	mu      sync.Mutex
	until   time.Time // that the kernel is kept so
	keeping bool
	over    sync.WaitGroup // of what goes on in the background
}

// renewal is how often the lock is to be taken for the kernel not to
// leave it to fork.
const renewal = 4 * time.Millisecond

// NewPrimer makes a primer. It takes the rights that Put takes, as Prime does. The caller closes
// it. On kernels where a probe is an event it fails: there nothing helps.
func (m Mechanism) NewPrimer() (_ *Primer, err error) {
	if err := m.SupportsWindows(); err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("wpptrace", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if err != nil {
		return nil, fmt.Errorf("make a file that nobody runs: %w", err)
	}
	p := &Primer{mechanism: m, file: os.NewFile(uintptr(fd), "memfd")}
	if err := writeEmptyELF(p.file); err != nil {
		return nil, errors.Join(fmt.Errorf("make a file that nobody runs: %w", err), p.Close())
	}
	spec := &ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	}
	m.Prepare(spec)
	if p.program, err = ebpf.NewProgram(spec); err != nil {
		return nil, errors.Join(fmt.Errorf("load an empty program: %w", err), p.Close())
	}
	return p, nil
}

// writeEmptyELF writes an ELF file without sections: the library that puts probes in reads its
// symbols.
func writeEmptyELF(w io.Writer) error {
	const version = 1
	h := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: version,
		Ehsize: uint16(binary.Size(elf.Header64{})),
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION] = version
	return binary.Write(w, binary.LittleEndian, &h)
}

// Prime returns when probes change at once, and has that stay so for a time. Cost: up to a grace
// period, and some 30 us of CPU time each few milliseconds.
func (p *Primer) Prime(stay time.Duration) error {
	if err := p.change(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(stay); until.After(p.until) {
		p.until = until
	}
	if !p.keeping {
		p.keeping = true
		p.over.Go(p.keep)
	}
	return nil
}

// keep keeps the kernel so, until it is no more needed, or an error tells that it cannot be.
func (p *Primer) keep() {
	for p.isNeeded() {
		time.Sleep(renewal)
		if p.change() != nil {
			p.mu.Lock()
			p.keeping = false
			p.mu.Unlock()
			return
		}
	}
}

func (p *Primer) isNeeded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeping = time.Now().Before(p.until)
	return p.keeping
}

// change puts a probe in, and has it taken out in the background, which waits for the kernel.
func (p *Primer) change() error {
	const somewhere = 1 // in the file
	probe, err := p.mechanism.Put(p.file, p.program, []uint64{somewhere}, nil, os.Getpid())
	if err != nil {
		return fmt.Errorf("put a probe where nobody runs: %w", err)
	}
	p.over.Go(func() { _ = probe.Close() })
	return nil
}

// Rest ends what goes on in the background: threads that wait for the kernel there are deaf to
// signals. It takes a few grace periods.
func (p *Primer) Rest() {
	p.mu.Lock()
	p.until = time.Time{}
	p.mu.Unlock()
	p.over.Wait()
}

// Close is Rest, and frees everything.
func (p *Primer) Close() error {
	p.Rest()
	var err error
	if p.program != nil {
		err = p.program.Close()
	}
	return errors.Join(err, p.file.Close())
}
