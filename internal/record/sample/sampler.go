package sample

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/target"
)

// Options say how a process is sampled. The zero value will do.
type Options struct {
	// Share is what samples may take of a CPU's time, and so of the process's; 0: 0.01.
	Share float64
	// Rate is how many samples are taken a second of CPU time at most; 0: 999.
	Rate int
	// Used is what the process has used so far; nil: it is asked for that.
	Used func() (target.Times, error)
}

// A Sampler samples a process. It belongs to one goroutine.
type Sampler struct {
	process *target.Process
	times   func() (target.Times, error)
	run     *target.Run
	objects bpf.SampleObjects
	clocks  []clock
	names   *nameMap

	cost, least time.Duration // of a sample; between two
	renewed     time.Time     // the periods

	paused   bool
	pausedAt used

	executable target.FileID
	code       []target.Code // as last listed
	last       totals
}

// totals are what only grows.
type totals struct {
	used
	kernel, lost uint64
}

// A used is how much time there was, up to some moment.
type used struct {
	cpu  time.Duration // of the process
	wall time.Time
}

// Start begins to sample a process. It takes CAP_PERFMON and CAP_BPF, and the rights to look at the
// process; Take takes none of these. An error that is ErrNotAllowed says that nobody like us may
// sample here. The process stays the caller's, who closes it after the sampler. Cost: 40 ms, half
// of it CPU time; 2 MB of the kernel's memory.
func Start(p *target.Process, o Options) (s *Sampler, err error) {
	s = &Sampler{process: p, times: o.Used}
	if s.times == nil {
		s.times = p.Times
	}
	defer func() {
		if err != nil {
			s.Close()
			s, err = nil, fmt.Errorf("sample process %d (%s): %w", p.PID, p.Name, err)
		}
	}()
	if s.run, err = p.Run(); err != nil {
		return s, err
	}
	exe, err := p.Executable()
	if err != nil {
		return s, err
	}
	defer exe.Close()
	if s.executable, err = target.IDOf(exe); err != nil {
		return s, err
	}
	if s.code, err = s.run.Code(); err != nil {
		return s, err
	}
	s.names = newNameMap(p)
	if err := bpf.LoadSampleObjects(&s.objects, nil); err != nil {
		return s, loadError(err)
	}
	return s, s.setClocks(o)
}

// loadError leaves out the verifier's log, which runs over many lines.
func loadError(err error) error {
	if refusal := (*ebpf.VerifierError)(nil); errors.As(err, &refusal) {
		err = refusal.Cause
	}
	return notAllowed(fmt.Errorf("load the BPF program: %w", err))
}

// setClocks sets a clock on each CPU.
func (s *Sampler) setClocks(o Options) (err error) {
	if s.cost, err = measureCost(&s.objects); err != nil {
		return notAllowed(err)
	}
	if _, err := s.drain(nil); err != nil { // what our own thread has done
		return err
	}
	if err := s.sample(s.process.PID); err != nil {
		return err
	}
	if s.last, err = s.totals(); err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	for cpu := range cpus {
		c, err := setClock(-1, cpu, time.Second)
		if errors.Is(err, unix.ENODEV) { // it is off
			continue
		}
		if err != nil {
			return notAllowed(err)
		}
		s.clocks = append(s.clocks, c)
	}
	const share, rate = 0.01, 999
	s.least = leastPeriod(s.cost, cmp.Or(o.Share, share), cmp.Or(o.Rate, rate), len(s.clocks))
	if err := s.setPeriods(); err != nil {
		return err
	}
	for _, c := range s.clocks {
		if err := c.run(s.objects.Sample); err != nil {
			return err
		}
	}
	return nil
}

// Cost is what a sample takes of the process, as measured.
func (s *Sampler) Cost() time.Duration { return s.cost }

// Period is the CPU time between two samples at least. It is up to 6 % longer.
func (s *Sampler) Period() time.Duration { return s.least }

// Take returns what was counted since it was last called, or since Start. An address counts for
// what the process has there now or, where that is nothing, had there at the call before. Where the
// process has called exec meanwhile, its addresses are those of two programs: they are unknown.
// After the process's end it returns what is left. Cost: half a millisecond as a rule; it is to be
// called about once a second, so that libraries and code that come and go are known.
func (s *Sampler) Take() (Counts, error) {
	if err := s.renew(); err != nil {
		return Counts{}, s.wrap(err)
	}
	now, err := s.totals()
	if err != nil {
		return Counts{}, s.wrap(err)
	}
	c := Counts{
		Period: s.least, CPUTime: now.cpu - s.last.cpu, Wall: now.wall.Sub(s.last.wall),
		Kernel: now.kernel - s.last.kernel, Lost: now.lost - s.last.lost,
	}
	s.last = now
	samples, err := s.drain(nil)
	if err != nil {
		return Counts{}, s.wrap(err)
	}
	code, known, err := s.listCode()
	if err != nil {
		return Counts{}, s.wrap(err)
	}
	s.attribute(&c, samples, code, known)
	s.code = code
	return c, nil
}

func (s *Sampler) wrap(err error) error {
	return fmt.Errorf("take the samples of process %d (%s): %w", s.process.PID, s.process.Name, err)
}

// renew changes the periods from time to time.
func (s *Sampler) renew() error {
	const enough = 500 * time.Millisecond
	if time.Since(s.renewed) < enough {
		return nil
	}
	return s.setPeriods()
}

func (s *Sampler) setPeriods() error {
	s.renewed = time.Now()
	for _, c := range s.clocks {
		if err := c.setPeriod(uneven(s.least)); err != nil {
			return err
		}
	}
	return nil
}

// Pause has nothing counted until Resume, neither samples nor CPU time.
func (s *Sampler) Pause() error {
	if s.paused {
		return nil
	}
	s.pausedAt, s.paused = s.now(), true
	return s.sample(nobody)
}

// Resume ends a Pause.
func (s *Sampler) Resume() error {
	if !s.paused {
		return nil
	}
	s.paused = false
	now := s.now()
	s.last.cpu += now.cpu - s.pausedAt.cpu
	s.last.wall = s.last.wall.Add(now.wall.Sub(s.pausedAt.wall))
	return s.sample(s.process.PID)
}

// nobody is the number of no process: 0 is that of idle CPUs.
const nobody = math.MaxUint32

// sample has the process of a number counted from now on, or nobody.
func (s *Sampler) sample(pid int) error {
	if err := s.objects.Target.Set(uint32(pid)); err != nil {
		return fmt.Errorf("name the process that is sampled: %w", err)
	}
	return nil
}

// now is how much time there was up to now, pauses included; of a process that has ended, the CPU
// time that is known.
func (s *Sampler) now() used {
	if s.paused {
		return s.pausedAt
	}
	now := used{s.last.cpu, time.Now()}
	if times, err := s.times(); err == nil {
		now.cpu = times.CPU
	}
	return now
}

func (s *Sampler) totals() (t totals, err error) {
	t.used = s.now()
	err = errors.Join(s.objects.InKernel.Get(&t.kernel), s.objects.Lost.Get(&t.lost))
	return t, err
}

// A hit is how many samples were at an address.
type hit struct{ at, n uint64 }

// drain empties the table of addresses, and appends what was in it.
func (s *Sampler) drain(to []hit) ([]hit, error) {
	const batch = 4096
	keys, values := make([]uint64, batch), make([]uint64, batch)
	var cursor ebpf.MapBatchCursor
	for {
		n, err := s.objects.Addresses.BatchLookupAndDelete(&cursor, keys, values, nil)
		for i := range n {
			to = append(to, hit{keys[i], values[i]})
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist):
			return to, nil
		case err != nil:
			return to, fmt.Errorf("read the table of addresses: %w", err)
		}
	}
}

// listCode lists the code that the process has now. It is not known what addresses stand for where
// the process has called exec since.
func (s *Sampler) listCode() (code []target.Code, known bool, err error) {
	if code, err = s.run.Code(); err != nil || len(code) > 0 {
		return code, true, err
	}
	again, err := s.process.Run()
	if err != nil {
		return s.code, !s.process.Alive(), nil
	}
	if code, err = again.Code(); err != nil || len(code) == 0 { // it is at its end
		again.Close()
		return s.code, true, err
	}
	s.run.Close()
	s.run = again
	if exe, err := s.process.Executable(); err == nil {
		if id, err := target.IDOf(exe); err == nil {
			s.executable = id
		}
		exe.Close()
	}
	return code, false, nil
}

// Open opens an image, which samples were in the code of, by way of the process's mapping. It takes
// CAP_CHECKPOINT_RESTORE, and CAP_DAC_READ_SEARCH where the file is another user's.
func (s *Sampler) Open(image target.FileID) (*os.File, error) {
	i := slices.IndexFunc(s.code, func(c target.Code) bool { return c.File == image && c.OfFile })
	if i < 0 {
		return nil, fmt.Errorf("open a file of process %d (%s): %w", s.process.PID, s.process.Name,
			os.ErrNotExist)
	}
	return s.process.OpenCode(s.code[i])
}

// attribute adds samples by what is at their addresses.
func (s *Sampler) attribute(c *Counts, samples []hit, code []target.Code, known bool) {
	var unnamed []placed
	for _, h := range samples {
		m, ok := codeAt(code, h.at)
		if !ok {
			m, ok = codeAt(s.code, h.at)
		}
		switch {
		case !known || !ok:
			c.Unknown += h.n
		case m.OfFile || m.File == s.executable:
			c.image(m.File, m.Name).add(h.at-m.Lo+m.Offset, h.n)
		default:
			unnamed = append(unnamed, placed{h, m.Name, ""})
		}
	}
	s.names.resolve(unnamed)
	for _, p := range unnamed {
		c.addUnplaced(p.mapping, p.name, p.n)
	}
}

// codeAt is the code at an address of a list.
func codeAt(code []target.Code, at uint64) (target.Code, bool) {
	i, _ := slices.BinarySearchFunc(code, at, func(c target.Code, at uint64) int {
		if c.Hi <= at {
			return -1
		}
		return 1
	})
	if i == len(code) || at < code[i].Lo {
		return target.Code{}, false
	}
	return code[i], true
}

// Close ends sampling. What was not taken is lost.
func (s *Sampler) Close() error {
	for _, c := range s.clocks {
		c.close()
	}
	s.clocks = nil
	if s.run != nil {
		s.run.Close()
		s.run = nil
	}
	if s.names != nil {
		s.names.close()
		s.names = nil
	}
	if s.objects.Sample == nil {
		return nil
	}
	err := s.objects.Close()
	s.objects = bpf.SampleObjects{}
	return err
}
