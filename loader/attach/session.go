package attach

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/bpf/wire"
	"wpptrace/loader/image"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
)

// DefaultRing is the size of the ring buffer, bytes.
const DefaultRing = 64 << 20

// Options say how to attach.
type Options struct {
	Ring int  // size of the ring buffer in bytes: a power of two, at least a page; 0: DefaultRing
	Bare bool // attach an empty program: what a hit costs by itself
}

// A Session is a plan attached to a process. It is used by one goroutine at a time, except that Metrics may be called by others.
type Session struct {
	process *target.Process
	objects bpf.TracerObjects
	probes  link.Link
	others  []link.Link
	iter    *link.Iter
	reader  *ringbuf.Reader
	record  ringbuf.Record
}

// Attach puts the plan's probes into the process, whose executable is exe, and checks each of them. Nothing is reported before Enable.
// Whatever fails, nothing stays attached. Cost: about 2 us a probe.
func Attach(p *target.Process, exe *os.File, im *image.Image, pl *plan.Plan, o Options) (*Session, error) {
	base, err := Base(p, im)
	if err != nil {
		return nil, err
	}
	s := &Session{process: p}
	if err := s.load(im, pl, base, o); err != nil {
		s.close()
		return nil, err
	}
	if err := s.attach(exe, im, pl, o); err != nil {
		s.close()
		return nil, fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, err)
	}
	if err := verify(p, pl, base); err != nil {
		s.close()
		return nil, fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, err)
	}
	return s, nil
}

// load loads the program with the plan's tables.
func (s *Session) load(im *image.Image, pl *plan.Plan, base uint64, o Options) error {
	spec, err := bpf.LoadTracer()
	if err != nil {
		return fmt.Errorf("read the BPF program: %w", err)
	}
	ring := o.Ring
	if ring == 0 {
		ring = DefaultRing
	}
	spec.Maps["ring"].MaxEntries = uint32(ring)
	spec.Maps["sites"].MaxEntries = uint32(max(len(pl.Sites), 1))
	spec.Maps["calls"].MaxEntries = uint32(max(len(pl.Calls), 1))
	for name, value := range map[string]any{
		"target":     uint32(s.process.PID),
		"image_base": base,
		"image_size": textEnd(im),
		"high_water": uint64(ring / 8),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s of the BPF program: %w", name, err)
		}
	}
	if err := spec.LoadAndAssign(&s.objects, nil); err != nil {
		return loadError(err)
	}
	return s.fill(pl)
}

// textEnd is where the image's code ends.
func textEnd(im *image.Image) (end uint64) {
	for _, s := range im.Segments {
		end = max(end, s.Addr+s.MemLen)
	}
	return end
}

// loadError says what a user can do about a program that the kernel refuses.
func loadError(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("load the BPF program: %w: run wpptrace as root", err)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("load the BPF program: %w: Linux 6.6 or later with BPF and BTF is needed; wpptrace check tells what is missing", err)
	}
	return fmt.Errorf("load the BPF program: %w: wpptrace check tells what is missing", err)
}

// fill writes the sites and the calls.
func (s *Session) fill(pl *plan.Plan) error {
	keys := make([]uint32, len(pl.Sites))
	sites := make([]bpf.TracerSite, len(pl.Sites))
	for i := range pl.Sites {
		keys[i], sites[i] = uint32(i), siteOf(&pl.Sites[i])
	}
	if len(keys) > 0 {
		if _, err := s.objects.Sites.BatchUpdate(keys, sites, nil); err != nil {
			return fmt.Errorf("write %d sites: %w", len(keys), err)
		}
	}
	returns := make([]uint64, 0, len(pl.Calls))
	calls := make([]bpf.TracerCall, 0, len(pl.Calls))
	for ra, c := range pl.Calls {
		call := bpf.TracerCall{Depth: uint32(c.Depth)}
		if c.Spoken {
			call.Spoken = 1
		}
		returns, calls = append(returns, ra), append(calls, call)
	}
	if len(returns) > 0 {
		if _, err := s.objects.Calls.BatchUpdate(returns, calls, nil); err != nil {
			return fmt.Errorf("write %d calls: %w", len(returns), err)
		}
	}
	return nil
}

// Flags of a site, as in bpf/types.h.
const (
	siteFirst = 1 << iota
	siteCase
	siteCaseTaken
	siteCaseMemory
	siteCaseRIP
	siteCaseTarget
)

const noRegister = 16

// siteOf turns a site of the plan into the kernel's.
func siteOf(s *plan.Site) bpf.TracerSite {
	k := bpf.TracerSite{Offset: s.Offset, Routine: uint32(s.Routine), Base: s.Base, Condition: s.Condition, CaseReg: noRegister, CaseIndex: noRegister}
	if s.First {
		k.Flags |= siteFirst
	}
	if s.Case == nil {
		return k
	}
	c := s.Case
	k.Flags |= siteCase
	k.CaseSize = c.Operand.Size
	if c.Taken {
		k.Flags |= siteCaseTaken
	}
	if c.Target {
		k.Flags |= siteCaseTarget
	}
	if !c.Operand.Mem {
		k.CaseReg = uint8(c.Operand.Reg)
		return k
	}
	k.Flags |= siteCaseMemory
	k.CaseDisp, k.CaseScale = int32(c.Operand.Disp), c.Operand.Scale
	if c.Operand.RIP {
		k.Flags |= siteCaseRIP
	}
	if c.Operand.Base >= 0 {
		k.CaseReg = uint8(c.Operand.Base)
	}
	if c.Operand.Index >= 0 {
		k.CaseIndex = uint8(c.Operand.Index)
	}
	return k
}

// attach makes the links: first those that tell of a thread's end, then the probes.
func (s *Session) attach(exe *os.File, im *image.Image, pl *plan.Plan, o Options) error {
	for _, p := range []*ebpf.Program{s.objects.ThreadExit, s.objects.ProgramExec} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return fmt.Errorf("follow the life of its threads: %w", err)
		}
		s.others = append(s.others, l)
	}
	var err error
	if s.iter, err = link.AttachIter(link.IterOptions{Program: s.objects.Drain}); err != nil {
		return fmt.Errorf("prepare to drain its threads: %w", err)
	}
	if s.reader, err = ringbuf.NewReader(s.objects.Ring); err != nil {
		return fmt.Errorf("open the ring buffer: %w", err)
	}
	offsets, cookies := make([]uint64, len(pl.Sites)), make([]uint64, len(pl.Sites))
	for i := range pl.Sites {
		offset, ok := im.FileOffset(pl.Sites[i].Addr)
		if !ok || offset == 0 {
			return fmt.Errorf("%x has no place in the file", pl.Sites[i].Addr)
		}
		offsets[i], cookies[i] = offset, uint64(i)
	}
	if len(offsets) == 0 {
		return nil
	}
	return s.probe(exe, offsets, cookies, o)
}

func (s *Session) probe(exe *os.File, offsets, cookies []uint64, o Options) error {
	file, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
	if err != nil {
		return fmt.Errorf("open its executable: %w", err)
	}
	program := s.objects.Hit
	if o.Bare {
		program = s.objects.Nothing
	}
	s.probes, err = file.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: offsets, Cookies: cookies, PID: uint32(s.process.PID)})
	switch {
	case errors.Is(err, unix.ESRCH), err != nil && !s.process.Alive():
		return fmt.Errorf("put in %d probes: %w", len(offsets), target.ErrGone)
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("put in %d probes: %w: Linux 6.6 or later is needed; wpptrace check tells what is missing", len(offsets), err)
	case err != nil:
		return fmt.Errorf("put in %d probes: %w", len(offsets), err)
	}
	return nil
}

// Enable starts the reports. fromStart says that the process has not run yet, so that no thread is met in its middle.
func (s *Session) Enable(fromStart bool) error {
	if !fromStart {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		if err := s.objects.EnabledAt.Set(uint64(now.Nano())); err != nil {
			return fmt.Errorf("start the reports: %w", err)
		}
	}
	if err := s.objects.Enabled.Set(uint32(1)); err != nil {
		return fmt.Errorf("start the reports: %w", err)
	}
	return nil
}

// Read returns the next batch. Its memory is good until the next call. When none comes until the deadline it returns os.ErrDeadlineExceeded, and
// has drained what there was.
func (s *Session) Read(deadline time.Time) (wire.Batch, error) {
	s.reader.SetDeadline(deadline)
	if err := s.reader.ReadInto(&s.record); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return wire.Batch{}, os.ErrDeadlineExceeded
		}
		return wire.Batch{}, fmt.Errorf("read the ring buffer: %w", err)
	}
	return wire.ParseBatch(s.record.RawSample)
}

// Fill is the share of the ring buffer that waits to be read, 0 to 1.
func (s *Session) Fill() float64 {
	return float64(s.reader.AvailableBytes()) / float64(s.reader.BufferSize())
}

// Detach takes the probes out. Cost: about 0.04 s and 2 us a probe. The process runs on as if nothing had been.
func (s *Session) Detach() error {
	if s.probes == nil {
		return nil
	}
	if err := s.probes.Close(); err != nil {
		return fmt.Errorf("take the probes out of process %d: %w", s.process.PID, err)
	}
	s.probes = nil
	return nil
}

// Flush has the threads that still live hand over what they have not sent: read until ErrDeadlineExceeded before, so that there is room for it, and
// afterwards. Call it after Detach.
func (s *Session) Flush() error {
	r, err := s.iter.Open()
	if err != nil {
		return fmt.Errorf("drain the threads of process %d: %w", s.process.PID, err)
	}
	defer r.Close()
	var b [1]byte
	for {
		if n, err := r.Read(b[:]); n == 0 || err != nil {
			return nil // the end: the program writes nothing
		}
	}
}

// Close detaches, if need be, and frees everything.
func (s *Session) Close() error {
	err := s.Detach()
	s.close()
	return err
}

func (s *Session) close() {
	if s.probes != nil {
		s.probes.Close()
	}
	for _, l := range s.others {
		l.Close()
	}
	if s.iter != nil {
		s.iter.Close()
	}
	if s.reader != nil {
		s.reader.Close()
	}
	s.objects.Close()
}
