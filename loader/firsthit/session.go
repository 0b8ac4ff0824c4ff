package firsthit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/bpf"
	"wpptrace/loader/arch"
	"wpptrace/loader/attach"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A Place is an instruction that may carry a probe.
type Place struct {
	Addr uint64 // link-time
	// Condition is that of a conditional jump, as x86.Inst has it; x86.NoCondition: it has one
	// outcome, the first.
	Condition uint8
	// Quiet are outcomes of which the first passage is not reported with Options.Each.
	Quiet [Outcomes]bool
	// Dear says that a passage takes long, as the kernel single-steps the instruction: DearOften
	// are many then.
	Dear bool
}

// Outcomes of a place: a jump's are that it goes on behind it, or jumps.
const Outcomes = int(bpf.FirstFirstCookieFIRST_OUTCOMES)

// An Image is an executable or a library that a process has mapped, with places in it.
type Image struct {
	Image  *image.Image
	File   *os.File // by way of the process's mapping; open until the session is closed
	Base   uint64   // where it is mapped: what to add to a link-time address
	Places []Place
	first  int // the number of the first of them
}

// Base is where an image is mapped, whose file is open: an executable, or a library.
func Base(p *target.Process, im *image.Image, file *os.File, isLibrary bool) (uint64, error) {
	if isLibrary {
		return attach.LibraryBase(p, im, file)
	}
	return attach.Base(p, im)
}

// Options say what is reported. The zero value will do.
type Options struct {
	// Each has the first passage of each outcome of each place reported, with the thread's stack:
	// some microseconds each, and 16 MB of the kernel's memory.
	Each bool
	// Room is how many places there may be that Add adds: 16 bytes of the kernel's memory each.
	Room int
}

// A Session is places of a process. It belongs to one goroutine, but for Wake.
type Session struct {
	process   *target.Process
	mechanism uprobe.Mechanism
	objects   bpf.FirstObjects
	counts    *ebpf.Memory
	reports   *ringbuf.Reader
	forks     link.Link // counts them
	record    ringbuf.Record
	guard     *guard.Guard
	images    []Image
	places    int
	room      int // for so many
}

// A Group is places whose probes go in and come out together.
type Group struct {
	Places []int // their numbers
	placed *guard.Probes
}

// Often is how many passages of an outcome are reported, DearOften of that of a place that is Dear;
// so is each power of two above.
const (
	Often     = uint64(bpf.FirstFirstReportFIRST_OFTEN)
	DearOften = uint64(bpf.FirstFirstReportFIRST_DEAR_OFTEN)
)

// A Passage is one that is reported.
type Passage struct {
	Time     uint64 // CLOCK_MONOTONIC, ns
	Place    int
	Outcome  int
	Passages uint64 // of that outcome of the place, this one included
	Thread   int
	Trace    *Trace // of a first passage, with Options.Each; else nil
}

// A Trace is where a thread was.
type Trace struct {
	PC, SP, FP uint64
	Stack      []byte // from SP on: a page or two, as far as they could be read
}

// Word is the 8 bytes of the stack at an address.
func (t *Trace) Word(at uint64) (word uint64, ok bool) {
	const size = 8
	if at < t.SP || at-t.SP > uint64(len(t.Stack)) || uint64(len(t.Stack))-(at-t.SP) < size {
		return 0, false
	}
	return binary.LittleEndian.Uint64(t.Stack[at-t.SP:]), true
}

// Load prepares a session for the places of some images of a process, first the executable's. They
// are numbered in this order. Nothing is put in yet. The caller closes the session, before the
// process. Cost: some 20 ms; 16 bytes of the kernel's memory a place.
func Load(p *target.Process, images []Image, o Options) (s *Session, err error) {
	s = &Session{process: p, mechanism: uprobe.Detect()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, err),
				s.Close())
			s = nil
		}
	}()
	if err := s.mechanism.SupportsWindows(); err != nil {
		return s, err
	}
	if err := s.mechanism.SupportsLibraries(); err != nil && len(images) > 1 {
		return s, err
	}
	if err := attach.CheckShadowStack(p); err != nil {
		return s, err
	}
	for _, m := range images {
		s.images = append(s.images, m)
		if err := s.number(&s.images[len(s.images)-1], images[0].File); err != nil {
			return s, err
		}
	}
	s.room = s.places + o.Room
	if err := s.load(o); err != nil {
		return s, err
	}
	s.guard, err = guard.Start(p)
	return s, err
}

// number gives the places of the last image their numbers, unless they may have no probes.
func (s *Session) number(m *Image, exe *os.File) error {
	if err := attach.CheckMemory(s.process, s.mechanism, exe, m.Memory()); err != nil {
		return err
	}
	m.first = s.places
	s.places += len(m.Places)
	err := m.Untouched(s.process)
	if err != nil {
		s.places = m.first
	}
	return err
}

// Add adds an image, a library as a rule. Its places are numbered behind the others. It fails where
// there is no room for them.
func (s *Session) Add(m Image) error {
	if err := s.mechanism.SupportsLibraries(); err != nil {
		return err
	}
	if s.places+len(m.Places) > s.room {
		return fmt.Errorf("it has %d places for probes, and there is room for %d more: name fewer "+
			"libraries", len(m.Places), s.room-s.places)
	}
	s.images = append(s.images, m)
	err := s.number(&s.images[len(s.images)-1], s.images[0].File)
	if err != nil {
		s.images = s.images[:len(s.images)-1]
	}
	return err
}

const page = 4096

// Memory is how many bytes of the process's memory its probes take: a page for each that has a
// place, which is the process's own from then on.
func (m *Image) Memory() uint64 {
	met := map[uint64]bool{}
	for _, at := range m.Places {
		met[at.Addr/page] = true
	}
	return page * uint64(len(met))
}

func (s *Session) load(o Options) error {
	spec, err := bpf.LoadFirst()
	if err != nil {
		return fmt.Errorf("read the BPF program: %w", err)
	}
	s.mechanism.Prepare(spec.Programs["first"])
	spec.Maps["passages"].MaxEntries = uint32(max(s.room, 1) * Outcomes)
	each := uint32(0)
	if o.Each {
		const room = 8 << 20 // for a thousand that come at once
		each, spec.Maps["reports"].MaxEntries = 1, room
	}
	err = cmp.Or(spec.Variables["target"].Set(uint32(s.process.PID)),
		spec.Variables["each"].Set(each))
	if err != nil {
		return fmt.Errorf("set a variable of the BPF program: %w", err)
	}
	err = attach.LoadObjects(func() error { return spec.LoadAndAssign(&s.objects, nil) })
	if err != nil {
		return err
	}
	if s.counts, err = s.objects.Passages.Memory(); err != nil {
		return fmt.Errorf("share the counters with the kernel: %w", err)
	}
	s.forks, err = link.AttachTracing(link.TracingOptions{Program: s.objects.OnFork})
	if err != nil {
		return fmt.Errorf("count its forks: %w", err)
	}
	if s.reports, err = ringbuf.NewReader(s.objects.Reports); err != nil {
		return fmt.Errorf("open the ring buffer: %w", err)
	}
	return nil
}

// Prime has probes change at once for a time; see guard.Guard.
func (s *Session) Prime(stay time.Duration) error { return s.guard.Prime(s.mechanism, stay) }

// Put puts the probes of some places of one image in, in random order: none of them, if it fails.
// Those that stand already, as they are in another group, are left. Cost: some 5 us of the
// process's time a probe, far more while some are hit often.
func (s *Session) Put(places []int) (*Group, error) {
	m := s.imageOf(places[0])
	offsets, cookies := make([]uint64, len(places)), make([]uint64, len(places))
	for k, i := range rand.Perm(len(places)) {
		at := m.Places[places[i]-m.first]
		offset, ok := m.Image.FileOffset(at.Addr)
		if !ok || offset == 0 {
			return nil, fmt.Errorf("%x has no place in the file", at.Addr)
		}
		offsets[k] = offset
		cookies[k] = at.cookie(places[i])
	}
	placed, err := s.guard.Probe(s.mechanism, m.File, s.objects.First, offsets, cookies,
		s.process.PID, guard.CPUOf(s.process.PID))
	if err != nil {
		return nil, fmt.Errorf("put %d probes into process %d (%s): %w", len(places),
			s.process.PID, s.process.Name, attach.ProbeError(err))
	}
	return &Group{places, placed}, nil
}

// cookie is what the BPF program is told of a place.
func (p *Place) cookie(number int) uint64 {
	c := uint64(number) | uint64(p.Condition)<<uint64(bpf.FirstFirstCookieFIRST_CONDITION)
	for o, quiet := range p.Quiet {
		if quiet {
			c |= 1 << (int(bpf.FirstFirstCookieFIRST_QUIET) + o)
		}
	}
	if p.Dear {
		c |= 1 << uint64(bpf.FirstFirstCookieFIRST_DEAR)
	}
	return c
}

// Remove begins to take groups out. Their probes are out after some us each, but for those that are
// in another group, too; the kernel goes on for long after that.
func (s *Session) Remove(list ...*Group) error {
	return s.removed(guard.BeginRemoval(guard.CPUOf(s.process.PID), placed(list)...))
}

// RemoveInTurn takes groups out of which no place is hit often: some of them at once, and others
// when these are gone.
func (s *Session) RemoveInTurn(list ...*Group) error {
	return s.removed(guard.RemoveInTurn(s.process.PID, placed(list)...))
}

func placed(list []*Group) (placed []*guard.Probes) {
	for _, g := range list {
		placed = append(placed, g.placed)
	}
	return placed
}

func (s *Session) removed(err error) error {
	if err != nil {
		return fmt.Errorf("take probes out of process %d: %w", s.process.PID, err)
	}
	return nil
}

// AwaitRemovals returns when no passage goes on of probes that are out.
func (s *Session) AwaitRemovals() error { return s.guard.AwaitRemovals() }

// Passages are those of each place and outcome so far: the outcome o of the place p is at index
// p*Outcomes+o. to is filled, and is as long as there are counters. Cost: a copy of 16 bytes a
// place.
func (s *Session) Passages(to []uint64) error {
	raw := make([]byte, 8*len(to))
	if _, err := s.counts.ReadAt(raw, 0); err != nil {
		return fmt.Errorf("read the counters: %w", err)
	}
	for i := range to {
		to[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}

// Counters is how many there are.
func (s *Session) Counters() int { return s.places * Outcomes }

// PassagesOf are those of each outcome of a place.
func (s *Session) PassagesOf(place int) (n [Outcomes]uint64, err error) {
	var raw [8 * Outcomes]byte
	if _, err := s.counts.ReadAt(raw[:], int64(place*len(raw))); err != nil {
		return n, fmt.Errorf("read the counters: %w", err)
	}
	for i := range n {
		n[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return n, nil
}

// ErrWoken says that Wake has been called.
var ErrWoken = errors.New("it was woken")

// Next returns the next passage that is reported; os.ErrDeadlineExceeded, if none is until then, or
// until a millisecond before; ErrWoken, if Wake has been called since it was last returned.
func (s *Session) Next(deadline time.Time) (Passage, error) {
	s.reports.SetDeadline(deadline)
	if err := s.reports.ReadInto(&s.record); err != nil {
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Passage{}, os.ErrDeadlineExceeded
		case errors.Is(err, ringbuf.ErrFlushed):
			return Passage{}, ErrWoken
		}
		return Passage{}, fmt.Errorf("read the ring buffer: %w", err)
	}
	var h bpf.FirstFirstHit
	n, err := binary.Decode(s.record.RawSample, binary.LittleEndian, &h)
	if err != nil {
		return Passage{}, fmt.Errorf("read a report of the kernel: %w", err)
	}
	p := Passage{h.Time, int(h.Site), int(h.Outcome), h.Passages, int(h.Tid), nil}
	if stack := s.record.RawSample[n:]; uint64(len(stack)) >= uint64(h.StackSize) && h.Pc != 0 {
		p.Trace = &Trace{h.Pc, h.Sp, h.Fp, slices.Clone(stack[:h.StackSize])}
	}
	return p, nil
}

// Wake has Next return, when it has returned what there is. Any goroutine may call it, until the
// session is closed.
func (s *Session) Wake() { _ = s.reports.Flush() }

// Unreported is how many reports there was no room for.
func (s *Session) Unreported() (n uint64, err error) {
	err = s.objects.Unreported.Get(&n)
	return n, err
}

// PerFork is what a probe that stands takes whenever a process is started whose memory is a copy,
// as fork does it: the kernel asks of each whether the new process is to have it.
const PerFork = 40 * time.Nanosecond

// Copies is how many processes the process has started since Load whose memory is a copy of its
// own.
func (s *Session) Copies() (n uint64, err error) {
	if err := s.objects.Copies.Get(&n); err != nil {
		return 0, fmt.Errorf("read how often it has forked: %w", err)
	}
	return n, nil
}

// Confine leaves the process that puts probes in with those capabilities alone.
func (s *Session) Confine(keep ...cap.Value) error { return s.guard.Confine(keep...) }

// GuardGone is closed when the guard has been killed.
func (s *Session) GuardGone() <-chan struct{} { return s.guard.Gone() }

// GuardDead reports whether the guard has been killed: no probe stands any more.
func (s *Session) GuardDead() bool { return s.guard.IsGone() }

// Close takes all probes out, and frees everything.
func (s *Session) Close() (err error) {
	if s.guard != nil {
		err = s.guard.Close()
		s.guard = nil
	}
	if s.reports != nil {
		err = errors.Join(err, s.reports.Close())
	}
	if s.forks != nil {
		err = errors.Join(err, s.forks.Close())
	}
	return errors.Join(err, s.objects.Close())
}

// imageOf is the image that a place is in.
func (s *Session) imageOf(place int) *Image {
	i, found := slices.BinarySearchFunc(s.images, place,
		func(m Image, place int) int { return cmp.Compare(m.first, place) })
	if !found {
		i--
	}
	for len(s.images[i].Places) == 0 { // the first of the same number
		i++
	}
	return &s.images[i]
}

// SameImage is how many of some places, whose numbers ascend, are in the image of the first one.
func (s *Session) SameImage(places []int) int {
	m := s.imageOf(places[0])
	n, _ := slices.BinarySearch(places, m.first+len(m.Places))
	return n
}

// Standing lists which of some places, whose numbers ascend, have no probe that stands. Cost: a
// read of the process's memory for each 4 KB of code.
func (s *Session) Standing(places []int) (fallen []int, err error) {
	for len(places) > 0 {
		m, n := s.imageOf(places[0]), s.SameImage(places)
		err := m.read(s.process, places[:n], func(place int, b byte) error {
			if b != breakpoint {
				fallen = append(fallen, place)
			}
			return nil
		})
		switch {
		case err != nil && m != &s.images[0]: // the process may have unmapped it
			fallen = append(fallen, places[:n]...)
		case err != nil:
			return nil, err
		}
		places = places[n:]
	}
	return fallen, nil
}

var breakpoint = arch.Native.Breakpoint()

// Untouched fails where the text of the process at one of the image's places is not the file's.
func (m *Image) Untouched(p *target.Process) error {
	return m.read(p, m.all(), m.untouched)
}

// Standing fails where one of the image's places has no breakpoint in the process.
func (m *Image) Standing(p *target.Process) error {
	return m.read(p, m.all(), func(place int, b byte) error {
		if b == breakpoint {
			return nil
		}
		return fmt.Errorf("the probe at %x does not stand", m.Places[place-m.first].Addr)
	})
}

func (m *Image) all() []int {
	places := make([]int, len(m.Places))
	for i := range places {
		places[i] = m.first + i
	}
	return places
}

// untouched fails where a byte of the text, that of a place, is not the file's.
func (m *Image) untouched(place int, b byte) error {
	addr := m.Places[place-m.first].Addr
	switch file := m.Image.Bytes(addr, addr+1); {
	case len(file) == 1 && file[0] == b:
		return nil
	case b == breakpoint:
		return fmt.Errorf("its text at %x: %w", addr, attach.ErrBreakpoint)
	}
	return fmt.Errorf("its text at %x is not the file's: code that is changed at run time cannot "+
		"be traced", addr)
}

// read hands over the first byte of the instruction of each of some places as it is in the memory
// of the process. Their addresses ascend.
func (m *Image) read(p *target.Process, places []int, visit func(place int, b byte) error) error {
	buf := make([]byte, page)
	for i := 0; i < len(places); {
		at := func(k int) uint64 { return m.Places[places[k]-m.first].Addr }
		lo, n := at(i), 1
		for i+n < len(places) && at(i+n)-lo < page {
			n++
		}
		part := buf[:at(i+n-1)-lo+1]
		if err := p.ReadMemory(part, m.Base+lo); err != nil {
			return err
		}
		for k := i; k < i+n; k++ {
			if err := visit(places[k], part[at(k)-lo]); err != nil {
				return err
			}
		}
		i += n
	}
	return nil
}
