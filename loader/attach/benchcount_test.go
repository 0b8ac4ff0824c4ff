package attach

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"wpptrace/bpf"
	"wpptrace/loader/uprobe"
)

// BenchmarkCount measures what a hit costs that is counted in the kernel, in an array and in a hash
// map, beside that of an empty BPF program and of one that is reported. Functions of our own do
// nothing but be hit, one for each program; they are called in turn, so that whatever else the
// machine does disturbs all alike. In each, a path of some sites is hit, half of which are
// conditional jumps; all but the first go on from the site before. The figures are medians over the
// rounds, and of their ratios. What reading the reports costs comes on top: see BenchmarkLive.
func BenchmarkCount(b *testing.B) {
	const sites, rounds, calls = 8, 4000, 4
	code := newLoops(b, sites)
	names := []string{"empty", "array", "hash", "streamed"}
	code.put(b, 0, emptyProgram(b), make([]uint64, sites))
	table := chain(sites)
	for i, dense := range []bool{true, false} {
		objects := table.load(b, dense)
		b.Cleanup(func() { table.check(b, objects) })
		code.put(b, 1+i, objects.Count, table.cookies)
	}
	code.put(b, 3, streaming(b, sites), numbers64(sites))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		took := make([][]float64, len(names))
		for n := range rounds {
			for i := range names {
				i = (i + n) % len(names)
				began := threadTime()
				for range calls {
					code.call(i)
				}
				took[i] = append(took[i], float64(threadTime()-began)/(calls*sites))
			}
		}
		for i, name := range names {
			ratios := make([]float64, rounds)
			for n := range ratios {
				ratios[n] = took[i][n] / took[0][n]
			}
			b.ReportMetric(middle(took[i]), "ns/hit-"+name)
			if i > 0 {
				b.ReportMetric(middle(ratios), name+"/empty")
			}
		}
	}
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Loops are functions in a file, each of which has sites and nothing else.
type loops struct {
	file   *os.File
	memory []byte
}

const loopBytes = 4096

func newLoops(b *testing.B, sites int) *loops {
	const functions = 4
	code := slices.Repeat([]byte{0xc3}, (1+functions)*loopBytes) // ret
	header := elf.Header64{Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64),
		byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}, Type: uint16(elf.ET_EXEC),
		Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: 64, Phentsize: 56,
		Shentsize: 64}
	if _, err := binary.Encode(code, binary.LittleEndian, &header); err != nil {
		b.Fatal(err)
	}
	for f := range functions {
		for s := range sites {
			insn := []byte{0x66, 0x90} // a nop
			if s%2 == 1 {
				insn = []byte{0x74, 0} // je, to the next instruction
			}
			copy(code[loopOffset(f, s):], insn)
		}
	}
	path := filepath.Join(b.TempDir(), "loops")
	if err := os.WriteFile(path, code, 0o700); err != nil {
		b.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { file.Close() })
	memory, err := unix.Mmap(int(file.Fd()), 0, len(code), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Munmap(memory) })
	return &loops{file, memory}
}

// loopOffset is where in the file a site of a function is: behind the header.
func loopOffset(function, site int) int { return loopBytes*(1+function) + 2*site }

func (l *loops) put(b *testing.B, function int, p *ebpf.Program, cookies []uint64) {
	offsets := make([]uint64, len(cookies))
	for s := range offsets {
		offsets[s] = uint64(loopOffset(function, s))
	}
	link, err := uprobe.Detect().Put(l.file, p, offsets, cookies, os.Getpid())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { link.Close() })
}

func (l *loops) call(function int) {
	code := &l.memory[loopOffset(function, 0)]
	value := &code
	(*(*func())(unsafe.Pointer(&value)))()
}

// A madeUp is a counting plan that was made up: cookies of its sites, steps, and how many keys.
type madeUp struct {
	cookies []uint64
	steps   []bpf.CountCountStep
	keys    uint64
}

// chain is what the counting knows of a path of some sites: one step leads on to each, and its row
// is as long as that needs.
func chain(sites int) *madeUp {
	const defaults, none = uint32(bpf.CountCountRowROW_DEFAULT), uint32(bpf.CountCountRowROW_NONE)
	t := &madeUp{keys: 2 * uint64(sites)}
	rows := 2 * uint32(sites)
	put := func(from uint32, hit, site int) {
		for int(from)+hit >= len(t.steps) {
			t.steps = append(t.steps, bpf.CountCountStep{From: none})
		}
		t.steps[int(from)+hit] = bpf.CountCountStep{From: from, To: rows + uint32(site) + 1,
			Key: uint64(hit)}
	}
	for s := range sites {
		c := uint64(2 * s)
		if s == 0 {
			c |= 1 << bpf.CountCountCookieCOUNT_FIRST
		} else {
			c |= 1 << bpf.CountCountCookieCOUNT_FOLLOWS
		}
		if s%2 == 1 {
			c |= 1<<bpf.CountCountCookieCOUNT_CONDITIONAL |
				4<<bpf.CountCountCookieCOUNT_CONDITION_SHIFT
		}
		t.cookies = append(t.cookies, c)
		for out := range 2 {
			from := defaults
			if s > 0 {
				from = rows + uint32(s)
			}
			put(from, 2*s+out, s)
		}
	}
	return t
}

// streaming is the program that reports, with some sites.
func streaming(b *testing.B, sites int) *ebpf.Program {
	spec, err := bpf.LoadTracer()
	if err != nil {
		b.Fatal(err)
	}
	spec.Maps["ring"].MaxEntries = DefaultRing
	spec.Maps["sites"].MaxEntries = uint32(sites)
	for name, value := range map[string]any{
		"target": uint32(os.Getpid()), "wake_watermark": uint64(DefaultRing),
		"overflow_watermark": uint64(DefaultRing),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			b.Fatal(err)
		}
	}
	var objects bpf.TracerObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { objects.Close() })
	list := make([]bpf.TracerSite, sites)
	for s := range list {
		list[s] = bpf.TracerSite{Routine: 1, Base: 4, Condition: 16, CaptureReg: 16,
			CaptureIndex: 16, Offset: 8, Stays: 3}
		if s%2 == 1 {
			list[s].Condition = 4
		}
		if s == 0 {
			list[s].Flags = uint8(bpf.TracerSiteFlagSITE_FIRST)
		}
	}
	list[sites-1].Stays = 0
	if err := write(objects.Sites, numbers(sites), list); err != nil {
		b.Fatal(err)
	}
	if err := objects.Enabled.Set(uint32(1)); err != nil {
		b.Fatal(err)
	}
	return objects.Hit
}

func numbers64(n int) []uint64 {
	list := make([]uint64, n)
	for i := range list {
		list[i] = uint64(i)
	}
	return list
}

func (t *madeUp) load(b *testing.B, dense bool) *bpf.CountObjects {
	spec, err := bpf.LoadCount()
	if err != nil {
		b.Fatal(err)
	}
	spec.Maps["steps"].MaxEntries = uint32(len(t.steps))
	spec.Maps["counters"].MaxEntries = uint32(t.keys)
	spec.Maps["sparse"].MaxEntries = uint32(t.keys)
	limit := uint64(0)
	if dense {
		limit = t.keys
	}
	for name, value := range map[string]any{"target": uint32(os.Getpid()), "dense": limit} {
		if err := spec.Variables[name].Set(value); err != nil {
			b.Fatal(err)
		}
	}
	var objects bpf.CountObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		b.Fatalf("%+v", err)
	}
	if err := write(objects.Steps, numbers(len(t.steps)), t.steps); err != nil {
		b.Fatal(err)
	}
	if err := objects.Enabled.Set(uint32(1)); err != nil {
		b.Fatal(err)
	}
	return &objects
}

// check fails where a hit was not counted, and frees all.
func (t *madeUp) check(b *testing.B, objects *bpf.CountObjects) {
	defer objects.Close()
	var m [bpf.CountCountMetricCOUNT_METRICS]uint64
	if err := objects.Metrics.Get(&m); err != nil {
		b.Fatal(err)
	}
	if m != [len(m)]uint64{} {
		b.Errorf("hits were not counted: %d", m)
	}
}

func numbers(n int) []uint32 {
	list := make([]uint32, n)
	for i := range list {
		list[i] = uint32(i)
	}
	return list
}
