package tally

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/cap"

	"wpptrace/bpf"
	"wpptrace/internal/saturating"
	"wpptrace/loader/attach"
	"wpptrace/loader/counting"
	"wpptrace/loader/firsthit"
	"wpptrace/loader/guard"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
	"wpptrace/loader/uprobe"
)

// A room is where counters are: some in an array; further ones are in a hash map, which has room
// for so many that have counted something.
type room struct{ dense, sparse uint64 }

var enough = room{1 << 20, 1 << 20}

// A Session is a process whose paths are counted, or are about to be. The order of calls is Load,
// Attach, Enable, Read; Close does at any time. It belongs to one goroutine.
type Session struct {
	process   *target.Process
	tables    *Tables
	dense     uint64 // counters that are in an array
	places    firsthit.Image
	mechanism uprobe.Mechanism
	objects   bpf.CountObjects
	links     []link.Link
	guard     *guard.Guard
}

// Load prepares a session for the executable of a process, whose file is open. Nothing is put in
// yet. The caller closes the session, before the process. Cost: some 20 ms; 16 bytes of the
// kernel's memory a step and 8 a counter.
func Load(p *target.Process, im *image.Image, exe *os.File, t *Tables) (*Session, error) {
	return loadInto(enough, p, im, exe, t)
}

func loadInto(room room, p *target.Process, im *image.Image, exe *os.File, t *Tables) (s *Session,
	err error) {
	s = &Session{process: p, tables: t, dense: min(t.Keys, room.dense), mechanism: uprobe.Detect()}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("attach to process %d (%s): %w", p.PID, p.Name, err),
				s.Close())
			s = nil
		}
	}()
	if err := attach.CheckShadowStack(p); err != nil {
		return s, err
	}
	if n, most := len(t.Sites), s.mechanism.Most(); n > most {
		return s, fmt.Errorf("%d probes: this kernel takes %d at most", n, most)
	}
	s.places = firsthit.Image{Image: im, File: exe}
	if s.places.Base, err = attach.Base(p, im); err != nil {
		return s, err
	}
	for i := range t.Sites {
		s.places.Places = append(s.places.Places, firsthit.Place{Addr: t.Sites[i].Addr})
	}
	if err := attach.CheckMemory(p, s.mechanism, exe, s.places.Memory()); err != nil {
		return s, err
	}
	if err := s.places.Untouched(p); err != nil {
		return s, err
	}
	if err := s.load(room); err != nil {
		return s, err
	}
	s.guard, err = guard.Start(p)
	return s, err
}

func (s *Session) load(room room) error {
	spec, err := bpf.LoadCount()
	if err != nil {
		return fmt.Errorf("read the BPF program: %w", err)
	}
	s.mechanism.Prepare(spec.Programs["count"])
	spec.Maps["steps"].MaxEntries = uint32(max(len(s.tables.steps), 1))
	spec.Maps["counters"].MaxEntries = uint32(max(s.dense, 1))
	spec.Maps["sparse"].MaxEntries = uint32(max(min(s.tables.Keys-s.dense, room.sparse), 1))
	err = cmp.Or(spec.Variables["target"].Set(uint32(s.process.PID)),
		spec.Variables["dense"].Set(s.dense), spec.Variables["unsure"].Set(s.tables.unsure),
		spec.Variables["image_begin"].Set(s.places.Base),
		spec.Variables["image_size"].Set(end(s.places.Image)))
	if err != nil {
		return fmt.Errorf("set a variable of the BPF program: %w", err)
	}
	err = attach.LoadObjects(func() error { return spec.LoadAndAssign(&s.objects, nil) })
	if err != nil {
		return err
	}
	keys := make([]uint32, len(s.tables.steps))
	for i := range keys {
		keys[i] = uint32(i)
	}
	if len(keys) == 0 {
		return nil
	}
	if _, err := s.objects.Steps.BatchUpdate(keys, s.tables.steps, nil); err != nil {
		return fmt.Errorf("write %d steps: %w", len(keys), err)
	}
	return nil
}

// end is where the image's code ends.
func end(im *image.Image) (end uint64) {
	for _, s := range im.Segments {
		end = max(end, s.Addr+s.MemLen)
	}
	return end
}

// Attach puts the probes in, and reads every one back. Nothing is counted before Enable. Cost: some
// 2 us a probe.
func (s *Session) Attach() error {
	if err := s.attach(); err != nil {
		return fmt.Errorf("attach to process %d (%s): %w", s.process.PID, s.process.Name, err)
	}
	return nil
}

func (s *Session) attach() error {
	if err := s.listen(); err != nil {
		return err
	}
	defer guard.RaisePriority()()
	offsets, cookies := make([]uint64, len(s.tables.Sites)), make([]uint64, len(s.tables.Sites))
	for i, at := range s.tables.Sites {
		var ok bool
		if offsets[i], ok = s.places.Image.FileOffset(at.Addr); !ok || offsets[i] == 0 {
			return fmt.Errorf("%x has no place in the file", at.Addr)
		}
		cookies[i] = at.cookie
	}
	_, err := s.guard.Probe(s.mechanism, s.places.File, s.objects.Count, offsets, cookies,
		s.process.PID, guard.AnyCPU)
	if err != nil {
		return attach.ProbeError(err)
	}
	return s.places.Standing(s.process)
}

// listen has the programs run that follow threads and signals.
func (s *Session) listen() error {
	for _, p := range []link.TracingOptions{{Program: s.objects.OnExec},
		{Program: s.objects.OnExit}, {Program: s.objects.OnSignal}} {
		l, err := link.AttachTracing(p)
		if err != nil {
			return fmt.Errorf("follow its threads: %w", err)
		}
		s.links = append(s.links, l)
	}
	return nil
}

// Enable starts the counting. fromStart says that the process has not run yet, so that no thread is
// met in the midst of a path.
func (s *Session) Enable(fromStart bool) error {
	if !fromStart {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
			return fmt.Errorf("read the clock: %w", err)
		}
		if err := s.objects.EnabledAt.Set(uint64(now.Nano())); err != nil {
			return fmt.Errorf("start counting: %w", err)
		}
	}
	if err := s.objects.Enabled.Set(uint32(1)); err != nil {
		return fmt.Errorf("start counting: %w", err)
	}
	return nil
}

// Disable ends the counting.
func (s *Session) Disable() error {
	if err := s.objects.Enabled.Set(uint32(0)); err != nil {
		return fmt.Errorf("end counting: %w", err)
	}
	return nil
}

// Counts are what the counters have, by key, and what was not counted.
type Counts struct {
	Counters []uint64
	Unknown  uint64 // hits of paths whose beginning was not seen
	Full     uint64 // paths that there was no counter for
	NoThread uint64 // hits of threads that there was no room for
	Unread   uint64 // hits whose activation could not be read
	// times that a signal came, or a thread ended, amid the image's code: so many paths at most
	// count that were not gone on with
	Amid uint64
}

// Read returns the counts so far. Cost: some us a thousand counters.
func (s *Session) Read() (*Counts, error) {
	c := &Counts{Counters: make([]uint64, s.tables.Keys)}
	if err := s.readDense(c, 0, s.dense); err != nil {
		return nil, err
	}
	var key, n uint64
	all := s.objects.Sparse.Iterate()
	for all.Next(&key, &n) {
		if key < s.tables.Keys {
			c.Counters[key] = n
		}
	}
	if err := all.Err(); err != nil {
		return nil, fmt.Errorf("read the counters: %w", err)
	}
	m, err := s.metrics()
	if err != nil {
		return nil, err
	}
	c.Unknown, c.Full = m[bpf.CountCountMetricCOUNT_UNKNOWN], m[bpf.CountCountMetricCOUNT_FULL]
	c.NoThread = m[bpf.CountCountMetricCOUNT_NO_THREAD]
	c.Amid = m[bpf.CountCountMetricCOUNT_AMID]
	c.Unread = m[bpf.CountCountMetricCOUNT_UNREADABLE]
	return c, nil
}

// readDense reads n counters from the first on, but for those that are not in the array.
func (s *Session) readDense(c *Counts, first, n uint64) error {
	end := min(first+n, s.dense)
	if first >= end {
		return nil
	}
	m, err := s.objects.Counters.Memory()
	if err != nil {
		return fmt.Errorf("read the counters: %w", err)
	}
	raw := make([]byte, 8*(end-first))
	if _, err := m.ReadAt(raw, int64(8*first)); err != nil {
		return fmt.Errorf("read the counters: %w", err)
	}
	for i := range end - first {
		c.Counters[first+i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return nil
}

// metrics are what the kernel has noted besides the counters.
func (s *Session) metrics() (m [bpf.CountCountMetricCOUNT_METRICS]uint64, err error) {
	if err := s.objects.Metrics.Get(&m); err != nil {
		return m, fmt.Errorf("read the counters: %w", err)
	}
	return m, nil
}

// Value is what a formula of a routine comes to, whose counters begin at first: 2^64-1, if that is
// too little. Counters are read one after the other, while paths may go on: what would be below 0
// is 0.
func (c *Counts) Value(f *counting.Formula, first uint64) uint64 {
	sum := func(keys []int) (n uint64) {
		for _, k := range keys {
			n = saturating.Add(n, c.Counters[first+uint64(k)])
		}
		return n
	}
	plus, minus := sum(f.Plus), sum(f.Minus)
	return plus - min(plus, minus)
}

// Replaced reports whether the process has called exec: nothing is counted any more.
func (s *Session) Replaced() bool {
	var v uint32
	return s.objects.Replaced.Get(&v) == nil && v != 0
}

// Confine leaves the process that puts probes in with those capabilities alone.
func (s *Session) Confine(keep ...cap.Value) error { return s.guard.Confine(keep...) }

// GuardDead reports whether the guard has been killed: no probe stands any more.
func (s *Session) GuardDead() bool { return s.guard.IsGone() }

// Close takes all probes out, and frees everything.
func (s *Session) Close() (err error) {
	if s.guard != nil {
		err = s.guard.Close()
		s.guard = nil
	}
	for _, l := range s.links {
		err = errors.Join(err, l.Close())
	}
	s.links = nil
	return errors.Join(err, s.objects.Close())
}
