package sharing

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"wpptrace/loader/target"
)

// A Memory is that of a process. Once memory is shared, it stays so: what is unmapped is not looked
// at. It belongs to one goroutine.
//
// What mremap moves or lengthens is found within some 100 ms. Not known of are debuggers and others
// that write into a process by system calls of their own, and what userfaultfd puts there.
type Memory struct {
	process   *target.Process
	records   *records
	sequences func() (areas []Area, isWhole bool)
	noted     map[mapping]bool
	looked    time.Time // at all that it has mapped
	anywhere  bool
	places    []place  // those that are shared, in order, none in another
	memory    *os.File // the process's; nil: it may not be opened
}

// An Area is some bytes from an address on.
type Area struct{ Addr, Size uint64 }

// A mapping is one of a file, or a shared one.
type mapping struct {
	place
	file   file
	code   bool
	shared bool
	write  bool
}

// mayChange reports whether others may write to it: it is shared, or of a file.
func (x *mapping) mayChange() bool { return x.shared || x.file.inode != 0 }

// A file is one by its device and inode; the zero value is none.
type file struct{ major, minor, inode uint64 }

// A place is some addresses.
type place struct{ lo, hi uint64 }

// betweenLooks is how often all that a process has mapped is looked at: nothing reports mremap.
const betweenLooks = 100 * time.Millisecond

// mostNoted is how many mappings are told apart. Where there are more, others may write anywhere.
const mostNoted = 1 << 14

// Follow begins to follow a process: what it maps from now on is noted before it is used, and so is
// that it starts a thread. The caller closes it. Others pay some time where they map memory, and at
// no other system call. sequences returns where its threads have areas of restartable sequences,
// which the kernel writes at any time: the same as before, and more; false: these are not all.
func Follow(p *target.Process, sequences func() (areas []Area, isWhole bool)) (m *Memory,
	err error) {
	m = &Memory{process: p, sequences: sequences, noted: map[mapping]bool{}}
	m.records, err = open(p.PID)
	if err == nil {
		// now, for it stays open when privileges are given up; to open it takes more than to trace
		m.memory, _ = os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
		if err = m.begin(); err == nil {
			return m, nil
		}
		m.Close()
	}
	return nil, fmt.Errorf("follow what memory process %d (%s) shares: %w", p.PID, p.Name, err)
}

func (m *Memory) begin() error {
	threads, err := m.process.Threads()
	m.anywhere = len(threads) > 1
	return cmp.Or(err, m.look())
}

// Close ends it.
func (m *Memory) Close() {
	m.records.close()
	m.memory.Close()
}

// Update takes in what has been mapped since, and reports whether others may write anywhere: there
// are threads, or a queue of requests, or so much was mapped that it is not known where. It takes
// some 100 ns where nothing was.
func (m *Memory) Update() (anywhere bool) {
	had := len(m.noted)
	areas, isAll := m.sequences()
	for _, a := range areas {
		m.note(mapping{place: place{a.Addr, a.Addr + a.Size}, shared: true})
	}
	isWhole := m.records.read(m.process.PID, m.note)
	if !m.anywhere && time.Since(m.looked) > betweenLooks {
		_ = m.look() // it has ended
	}
	if len(m.noted) > had {
		m.arrange()
	}
	m.anywhere = m.anywhere || !isAll || !isWhole || len(m.noted) > mostNoted
	return m.anywhere
}

// note notes a mapping. Where too many are told apart it is one of any file: a process that maps
// file after file has them at few places.
func (m *Memory) note(x mapping) {
	if len(m.noted) > mostNoted {
		x = mapping{place: x.place, shared: true, write: x.write}
	}
	m.noted[x] = true
}

// Holds reports whether others may write to some of those bytes.
func (m *Memory) Holds(addr uint64, n int) bool {
	i := sort.Search(len(m.places), func(i int) bool { return m.places[i].hi > addr })
	return i < len(m.places) && m.places[i].lo < addr+uint64(n)
}

// look looks at all that the process has mapped.
func (m *Memory) look() error {
	all, err := m.process.AllMappings()
	m.looked = time.Now()
	if err != nil {
		return err
	}
	for _, x := range all {
		m.anywhere = m.anywhere || isQueue(x.Name)
		n := mapping{place: place{x.Lo, x.Hi}, code: x.Exec, shared: x.Shared, write: x.Write}
		n.file.major, n.file.minor, n.file.inode = x.File.Numbers()
		if n.mayChange() {
			m.note(n)
		}
	}
	m.arrange()
	return nil
}

// isQueue reports whether a mapping is of a queue of requests to the kernel, io_uring's or that of
// aio: it writes to the process's memory when these are done, whatever runs then.
func isQueue(name string) bool {
	return name == "anon_inode:[io_uring]" || strings.HasPrefix(name, "/[aio]")
}

// arrange makes the places of what is mapped. Of a program's and its libraries' files none are:
// whoever rewrites these changes what runs, too.
func (m *Memory) arrange() {
	code := map[file]bool{}
	for x := range m.noted {
		if x.code {
			code[x.file] = true
		}
	}
	m.places = m.places[:0]
	for x := range m.noted {
		if x.shared || x.file.inode != 0 && !code[x.file] {
			m.places = append(m.places, x.place)
		}
	}
	slices.SortFunc(m.places, func(a, b place) int { return cmp.Compare(a.lo, b.lo) })
	merged := m.places[:0]
	for _, p := range m.places {
		if n := len(merged); n > 0 && p.lo <= merged[n-1].hi {
			merged[n-1].hi = max(merged[n-1].hi, p.hi)
			continue
		}
		merged = append(merged, p)
	}
	m.places = merged
}
