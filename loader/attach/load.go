package attach

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/internal/remedy"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/loads"
	"wpptrace/loader/plan"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// DefaultRing is the size of the ring buffer, bytes.
const DefaultRing = 64 << 20

// Options are how a session reports.
type Options struct {
	Ring int // bytes of the ring buffer, a power of two, at least a page
	// stop the process, by SIGSTOP, where the ring buffer would overflow, until it has been read
	Hold bool
	// Shared has libraries traced too, those that Add names, and stops the process where it maps
	// code until Refresh. It takes 29 MB of the kernel's memory.
	Shared bool
	// Guard puts the probes in and takes them out; nil: one that the session starts and ends. The
	// caller closes it, after the session.
	Guard *guard.Guard
	// ForkOfTraced says that the process is a fork of one that is traced by the same plan: the
	// breakpoints in its text are copies of that one's.
	ForkOfTraced bool
	// Mechanism is how the probes go in; 0: the best that the running kernel has.
	Mechanism uprobe.Mechanism
	// Loads has each hit take a state, which Read returns too: registers, and memory by the plan's
	// load programs. Its base is the plan of the session. It takes 5 MB of the kernel's memory,
	// 20 more with Shared. nil: none.
	Loads *loads.Plan

	last bpf.TracerPart // what a hit does last, where its parts are measured; 0: all
}

// Load prepares a session: it loads the BPF program with the tables of the plan's first part, for
// the image that the process runs. Nothing is attached yet, and the process is only looked at. The
// caller closes the session. Cost: about 50 ms, the verifier's.
func Load(p *target.Process, im *image.Image, pl *plan.Plan, o Options) (*Session, error) {
	base, err := Base(p, im)
	if err != nil {
		return nil, err
	}
	if o.Mechanism == 0 {
		o.Mechanism = uprobe.Detect()
	}
	if n, most := len(pl.Sites)+len(o.extra()), o.Mechanism.Most(); n > most {
		return nil, remedy.Errorf(remedy.FewerProbes, "put %d probes into process %d (%s): this "+
			"kernel, before Linux 6.6, takes half a minute to take %d out, and more are not put in",
			n, p.PID, p.Name, most)
	}
	s := &Session{process: p, guard: o.Guard, hold: o.Hold}
	s.threads.objects = &s.objects
	s.images = images{process: p, objects: &s.objects, mechanism: o.Mechanism, plan: pl,
		looks: looks{plan: o.Loads, objects: &s.objects}, libraries: o.Shared,
		list: []*mapped{newMapped(&pl.Parts[0], base)}}
	s.images.executable().copied = o.ForkOfTraced
	s.images.executable().extra = o.extra()
	if err := s.load(o); err != nil {
		s.objects.Close()
		return nil, err
	}
	return s, nil
}

func (s *Session) load(o Options) error {
	spec, err := bpf.LoadTracer()
	if err != nil {
		return fmt.Errorf("read the BPF program: %w", err)
	}
	x := &s.images
	x.mechanism.Prepare(spec.Programs["hit"])
	x.mechanism.Prepare(spec.Programs["empty_probe"])
	spec.Maps["ring"].MaxEntries = uint32(o.Ring)
	spec.Maps["overflow_ring"].MaxEntries = o.overflowRing()
	sites, room, shared := len(x.executable().sites), 0, uint32(0)
	if x.libraries {
		sites = x.plan.Limit(sitesFor(target.MemoryLeft(os.Getpid())))
		room, shared = sites, 1
	}
	spec.Maps["sites"].MaxEntries = uint32(max(sites, 1))
	spec.Maps["site_hits"].MaxEntries = uint32(max(sites, 1))
	if x.calls, err = bpf.NewCallTable(partCalls(x.plan, 0), room); err != nil {
		return err
	}
	spec.Maps["calls"].MaxEntries = uint32(len(x.calls.Entries))
	if err := x.looks.size(spec, sites, len(x.calls.Entries), x.libraries); err != nil {
		return err
	}
	for name, value := range map[string]any{
		"target":             uint32(s.process.PID),
		"image_base":         x.executable().base,
		"image_size":         textEnd(x.executable().image),
		"shared":             shared,
		"wake_watermark":     uint64(o.Ring / 8),
		"stop_watermark":     o.stopWatermark(),
		"overflow_watermark": o.overflowWatermark(),
		"call_shift":         x.calls.Shift,
		"last_part":          o.last,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s of the BPF program: %w", name, err)
		}
	}
	if err := LoadObjects(func() error { return spec.LoadAndAssign(&s.objects, nil) }); err != nil {
		return err
	}
	if err := x.writeSites(x.executable(), 0); err != nil {
		return err
	}
	return x.writeCalls(x.calls.Taken())
}

// sitesFor is how many sites tables are to have room for, by how much memory there is for all: they
// take at most a quarter of it.
func sitesFor(memory uint64) int {
	const perSite = 48 + 8 + 4*16 // bytes, with its calls
	return int(min(memory/4/perSite, plan.MaxSites))
}

// stopWatermark is how full the ring buffer is when the process is stopped: other threads may have
// events to send before they stop.
func (o Options) stopWatermark() uint64 {
	const small = 64 << 10
	switch {
	case !o.Hold:
		return 0
	case o.Ring < small:
		return uint64(o.Ring / 8)
	}
	return uint64(o.Ring / 2)
}

// overflowWatermark is how full the ring buffer is when it takes nothing of threads that are at
// their end any more, where what room it has is for those that run on until they have stopped.
func (o Options) overflowWatermark() uint64 {
	const others = 1 << 20
	if !o.Hold {
		return uint64(o.Ring)
	}
	return max(o.stopWatermark(), uint64(max(0, o.Ring-others)))
}

// overflowRing is the size of the buffer for what is left of threads and has no room in the ring
// buffer: where nothing is to be lost, 6,000 threads that have as much left as there may be, or
// 30,000 that have done little.
func (o Options) overflowRing() uint32 {
	const least, most = 64 << 10, 4 << 20
	if o.Hold {
		return most
	}
	return uint32(min(max(o.Ring/8, least), most))
}

// undisturbed runs a function on a thread that takes no signals meanwhile. The verifier gives up at
// a signal and is begun anew: signals that come faster than it is done would keep it at that for
// ever.
func undisturbed(load func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	all.Val[0] = ^uint64(0)
	for _, own := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL,
		unix.SIGTRAP} {
		// faults of the thread itself
		all.Val[0] &^= 1 << (own - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &all, &before); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return load()
}

// textEnd is where the image's code ends.
func textEnd(im *image.Image) (end uint64) {
	for _, s := range im.Segments {
		end = max(end, s.Addr+s.MemLen)
	}
	return end
}

// LoadObjects runs a function that has the kernel take BPF programs. Where it refuses them, the
// error says what a user can do.
func LoadObjects(load func() error) error {
	if err := undisturbed(load); err != nil {
		return loadError(err)
	}
	return nil
}

// loadError says what a user can do about a program that the kernel refuses.
func loadError(err error) error {
	var fix string
	refusal := &ebpf.VerifierError{}
	switch {
	case errors.As(err, &refusal) && len(refusal.Log) > 0:
		// which says EACCES, but not of whoever loads it
		fix = "Linux 6.1 or later is needed: if this is one, report it"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		fix = "run wpptrace as root"
	case errors.Is(err, unix.ENOSYS):
		fix = "this kernel, or a sandbox, has no bpf system call: run wpptrace outside of it"
	case errors.Is(err, ebpf.ErrNotSupported):
		fix = "Linux 6.1 or later with BPF and BTF is needed: wpptrace check says what is " +
			"missing"
	case errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.E2BIG):
		return remedy.Errorf(remedy.LessKernelMem, "load the BPF program: %w", lastLine(err))
	default:
		fix = "wpptrace check says what is missing"
	}
	return fmt.Errorf("load the BPF program: %w: %s", lastLine(err), fix)
}

// lastLine leaves out the verifier's log, which runs over many lines.
func lastLine(err error) error {
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) {
		return verifier.Cause
	}
	return err
}

// siteOf turns a site of the plan into the kernel's. call returns what is known of a call in its
// image.
func siteOf(s *plan.Site, call func(ra uint64) plan.Call) bpf.TracerSite {
	const none = uint8(bpf.TracerSiteNoneNO_REG)
	k := bpf.TracerSite{Offset: s.Offset, Routine: uint32(s.Routine), Base: s.Base,
		Condition: s.Condition, CaptureReg: none, CaptureIndex: none}
	if s.First {
		k.Flags |= uint8(bpf.TracerSiteFlagSITE_FIRST)
	}
	for outcome, stays := range s.SameActivation {
		if stays {
			k.Stays |= 1 << outcome
		}
	}
	for outcome, ra := range s.NextCall {
		if ra > 0 {
			k.Next[outcome] = bpf.NextCall(ra, call(ra).Depth)
		}
	}
	if s.Caller > 0 {
		k.Caller = bpf.OnlyCaller(s.Caller, call(s.Caller).AfterEvent)
	}
	if s.Slot {
		k.Flags |= uint8(bpf.TracerSiteFlagSITE_SLOT)
	}
	if s.Capture != nil {
		setCapture(&k, s.Capture.Encode())
	}
	return k
}

// setCapture has a site read a value.
func setCapture(k *bpf.TracerSite, e plan.Encoding) {
	flag := func(on bool, f bpf.TracerSiteFlag) {
		if on {
			k.Flags |= uint8(f)
		}
	}
	flag(e.Always, bpf.TracerSiteFlagSITE_VALUE)
	flag(!e.Always, bpf.TracerSiteFlagSITE_CAPTURE)
	flag(e.Taken, bpf.TracerSiteFlagSITE_CAPTURE_TAKEN)
	flag(e.Target, bpf.TracerSiteFlagSITE_CAPTURE_TARGET)
	flag(e.Memory, bpf.TracerSiteFlagSITE_CAPTURE_MEMORY)
	flag(e.RIP, bpf.TracerSiteFlagSITE_CAPTURE_RIP)
	k.CaptureSize, k.CaptureScale, k.CaptureDisp = e.Size, e.Scale, e.Disp
	if e.Reg != plan.NoRegister {
		k.CaptureReg = uint8(e.Reg)
	}
	if e.Index != plan.NoRegister {
		k.CaptureIndex = uint8(e.Index)
	}
}
