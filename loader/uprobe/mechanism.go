package uprobe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
)

// A Mechanism is how a kernel takes probes.
type Mechanism int

// The mechanisms, those of older kernels first.
const (
	// Events: before Linux 6.6 each probe is a perf event of its own, in all processes that run the
	// file, for those of one process would be of one thread of it. The program is to check whose a
	// hit is.
	Events Mechanism = iota + 1
	// Link: one link has all probes. Before Linux 6.10 its filter by process lets one thread
	// through, so that it is in all processes that run the file too.
	Link
	// ProcessLink: one link has all probes, in one process.
	ProcessLink
)

// Detect returns the best mechanism of the running kernel. It asks the kernel for links; whether
// their filter is broken shows only to a process with several threads, and is known by the kernel's
// version.
func Detect() Mechanism {
	version, err := features.LinuxVersionCode()
	if err != nil {
		version = linux(99, 0) // so new that it gives it in another form
	}
	return mechanismOf(version, features.HaveBPFLinkUprobeMulti())
}

// mechanismOf is the mechanism of a kernel, by its version and what it answers when asked for
// links.
func mechanismOf(version uint32, links error) Mechanism {
	switch {
	case errors.Is(links, ebpf.ErrNotSupported):
		return Events
	case version < linux(6, 10):
		return Link
	}
	return ProcessLink
}

// linux is the number of a version of the kernel.
func linux(major, minor uint32) uint32 { return major<<16 | minor<<8 }

// String says what is to be expected of the mechanism.
func (m Mechanism) String() string {
	switch m {
	case Events:
		return fmt.Sprintf("a perf event each: %d at most, 0.1 s each to take out, and in all "+
			"processes that run the program (Linux 6.6: one link for all)", mostEvents)
	case Link:
		return "one link for all, in all processes that run the program (Linux 6.10: in one alone)"
	}
	return "one link for all, in one process alone"
}

// SupportsWindows fails where probes cannot be put in and taken out again in a moment.
func (m Mechanism) SupportsWindows() error {
	if m == Events {
		return errors.New("it takes Linux 6.6 or later: before it, taking probes out takes 0.1 s " +
			"each")
	}
	return nil
}

// SupportsLibraries fails where probes in a library would slow down all processes that use it.
func (m Mechanism) SupportsLibraries() error {
	if m != ProcessLink {
		return errors.New("it takes Linux 6.10 or later: before it, probes in a library slow " +
			"down all processes that use it")
	}
	return nil
}

// SupportsFollow fails where the probes of a process stand in others too, so that those that it
// starts cannot be distinguished from it.
func (m Mechanism) SupportsFollow() error {
	if m != ProcessLink {
		return errors.New("it takes Linux 6.10 or later: before it, probes are in all processes " +
			"of a program at once")
	}
	return nil
}

// SupportsClearing fails where the copies of probes that a forked process has cannot be taken out
// while the probes stand: they are for it as well.
func (m Mechanism) SupportsClearing() error {
	if m != ProcessLink {
		return errors.New("it takes Linux 6.10 or later: before it, probes are in all processes " +
			"of a program at once")
	}
	return nil
}

// mostEvents is how many perf events are put in at once. The kernel takes them out one by one, 0.1
// s each, and nothing can hurry it or end that: half a minute is what may be asked of whoever waits
// for it. Their descriptors stay below the 1024 that a process may have where nobody has raised it.
const mostEvents = 300

// mostLinked is what a link takes.
const mostLinked = 1 << 20

// Most is how many probes may be put in at once.
func (m Mechanism) Most() int {
	if m == Events {
		return mostEvents
	}
	return mostLinked
}

// Files is how many descriptors so many probes take.
func (m Mechanism) Files(probes int) int {
	if m == Events {
		return 2 * probes
	}
	return 1
}

// Removal is about how long it takes to take so many probes out.
func (m Mechanism) Removal(probes int) time.Duration {
	if m == Events {
		return time.Duration(probes) * 120 * time.Millisecond
	}
	return 40*time.Millisecond + time.Duration(probes)*2*time.Microsecond
}

// Prepare has a program, made for uprobe_multi links, loaded so that Put takes it.
func (m Mechanism) Prepare(p *ebpf.ProgramSpec) {
	if m == Events {
		p.AttachType = ebpf.AttachNone
	}
}

// Put puts a program at places of a file, wherever it is mapped in the memory of the process pid,
// or of all if the kernel cannot filter by process. Each place has a cookie; none has where cookies
// is nil. What it returns takes them out when it is closed.
func (m Mechanism) Put(file *os.File, program *ebpf.Program, offsets, cookies []uint64,
	pid int) (io.Closer, error) {
	if most := m.Most(); len(offsets) > most {
		return nil, fmt.Errorf("%d probes are more than the %d that this kernel takes",
			len(offsets), most)
	}
	// By way of the descriptor: what the process runs, or what is at its path, may have become
	// another file.
	executable, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		return nil, fmt.Errorf("open its executable: %w", err)
	}
	if m == Events {
		return putEvents(executable, program, offsets, cookies)
	}
	if m != ProcessLink {
		pid = 0
	}
	return executable.UprobeMulti(nil, program,
		&link.UprobeMultiOptions{Addresses: offsets, Cookies: cookies, PID: uint32(pid)})
}

// events are probes that are a perf event each.
type events []link.Link

func putEvents(executable *link.Executable, program *ebpf.Program, offsets,
	cookies []uint64) (_ io.Closer, err error) {
	var all events
	for i, offset := range offsets {
		o := link.UprobeOptions{Address: offset}
		if cookies != nil {
			o.Cookie = cookies[i]
		}
		l, err := executable.Uprobe("", program, &o)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("put in probe %d of %d: %w", i+1, len(offsets), err),
				all.Close())
		}
		all = append(all, l)
	}
	return all, nil
}

// Close takes them out.
func (e events) Close() (err error) {
	for _, l := range e {
		err = errors.Join(err, l.Close())
	}
	return err
}
