package main

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"wpptrace/compress/wpp"
	"wpptrace/compress/wpp/samples"
	"wpptrace/query/profile"
)

// A routineShare compares how much of the time in the traced code goes to a routine.
type routineShare struct {
	Routine   string  `json:"routine"`
	Perf      float64 `json:"perf"`
	Estimated float64 `json:"wpptrace"`
}

// A perfProfile is where a process was found by perf.
type perfProfile struct {
	samples  int
	where    map[string]int // "kernel", an image's base name, or "no file"
	routines map[int]int    // by index in Snapshot.Routines, of those that are traced
}

// mapping is a line of /proc/PID/maps of something that runs.
type mapping struct {
	lo, hi, offset uint64
	path           string
}

// readMaps reads the executable lines of /proc/PID/maps, in ascending order.
func readMaps(r io.Reader) (list []mapping, err error) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		f := strings.Fields(in.Text())
		if len(f) < 5 || !strings.Contains(f[1], "x") {
			continue
		}
		lo, hi, _ := strings.Cut(f[0], "-")
		var m mapping
		for _, n := range []struct {
			to   *uint64
			text string
		}{{&m.lo, lo}, {&m.hi, hi}, {&m.offset, f[2]}} {
			if *n.to, err = strconv.ParseUint(n.text, 16, 64); err != nil {
				return nil, fmt.Errorf("read memory mappings: %q: %w", in.Text(), err)
			}
		}
		if len(f) > 5 {
			m.path = strings.TrimSuffix(strings.Join(f[5:], " "), " (deleted)")
		}
		list = append(list, m)
	}
	return list, in.Err()
}

// firstOfKernel is the lowest address that user space never has.
const firstOfKernel = 1 << 63

// readSamples reads what perf script -F ip prints: an address a line.
func readSamples(r io.Reader) (list []uint64, err error) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		ip, err := strconv.ParseUint(text, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read perf's samples: %w", err)
		}
		list = append(list, ip)
	}
	return list, in.Err()
}

// locate sorts samples by where they are. s is nil where there is no snapshot.
func locate(samples []uint64, maps []mapping, s *wpp.Snapshot) *perfProfile {
	p := &perfProfile{samples: len(samples), where: map[string]int{}, routines: map[int]int{}}
	index := newRoutineIndex(s, imagePaths(s, maps))
	for _, ip := range samples {
		i, found := slices.BinarySearchFunc(maps, ip, func(m mapping, ip uint64) int {
			if m.hi <= ip {
				return -1
			} else if m.lo > ip {
				return 1
			}
			return 0
		})
		switch {
		case ip >= firstOfKernel:
			p.where["kernel"]++
		case !found || !strings.HasPrefix(maps[i].path, "/"):
			p.where["no file"]++
		default:
			m := maps[i]
			p.where[filepath.Base(m.path)]++
			if r, ok := index.find(m.path, ip-m.lo+m.offset); ok {
				p.routines[r]++
			}
		}
	}
	return p
}

// A routineIndex finds traced routines by where they are in their files.
type routineIndex map[string][]located // by path, in ascending order

type located struct {
	lo, hi  uint64 // offsets
	routine int
}

// newRoutineIndex has the routines of a snapshot whose images have these paths.
func newRoutineIndex(s *wpp.Snapshot, paths []string) routineIndex {
	x := routineIndex{}
	if s == nil {
		return x
	}
	var offsets []func(uint64) uint64
	for _, path := range paths {
		offsets = append(offsets, offsetsOf(path))
	}
	for i, r := range s.Routines {
		if r.LeftOut != "" {
			continue
		}
		path := paths[r.Image]
		for _, part := range r.Ranges {
			lo := offsets[r.Image](part.Lo)
			x[path] = append(x[path], located{lo, lo + part.Hi - part.Lo, i})
		}
	}
	for _, list := range x {
		slices.SortFunc(list, func(a, b located) int { return cmp.Compare(a.lo, b.lo) })
	}
	return x
}

// imagePaths are the paths of a snapshot's images: it has their names, the mappings where they are.
func imagePaths(s *wpp.Snapshot, maps []mapping) (paths []string) {
	if s == nil {
		return nil
	}
	for i := range s.Images {
		path := s.Images[i].Name
		for _, m := range maps {
			if strings.HasPrefix(m.path, "/") && filepath.Base(m.path) == s.Images[i].Base() {
				path = m.path
			}
		}
		paths = append(paths, path)
	}
	return paths
}

func (x routineIndex) find(path string, offset uint64) (routine int, ok bool) {
	i, found := slices.BinarySearchFunc(x[path], offset, func(l located, offset uint64) int {
		if l.hi <= offset {
			return -1
		} else if l.lo > offset {
			return 1
		}
		return 0
	})
	if !found {
		return 0, false
	}
	return x[path][i].routine, true
}

// offsetsOf returns what makes offsets in a file of link-time addresses. Where the file cannot be
// read, nothing will be found there.
func offsetsOf(path string) func(addr uint64) uint64 {
	var progs []*elf.Prog
	if f, err := elf.Open(path); err == nil {
		progs = f.Progs
		f.Close()
	}
	return func(addr uint64) uint64 {
		for _, p := range progs {
			if p.Type == elf.PT_LOAD && addr-p.Vaddr < p.Filesz {
				return addr - p.Vaddr + p.Off
			}
		}
		return math.MaxInt64
	}
}

// compareShares compares the ten routines that perf has found most, and the ten that wpptrace says
// most of: by how much they differ at most, in points, follows. Shares are those of the CPU time,
// or where wpptrace has no samples, of perf's in traced routines and of wpptrace's instructions.
func compareShares(
	p *perfProfile, s *wpp.Snapshot,
) (list []routineShare, worst float64, err error) {
	flat, err := profile.Flat(s)
	if err != nil {
		return nil, 0, err
	}
	parts, total, sampled := map[int]uint64{}, flat.Total, 0
	for i := range flat.Routines {
		x := &flat.Routines[i]
		if x.Routine != profile.NoRoutine && s.Routines[x.Routine].LeftOut == "" {
			parts[x.Routine] = x.Cost
			if flat.Samples > 0 {
				parts[x.Routine] = x.Samples
			}
		}
	}
	for _, n := range p.routines {
		sampled += n
	}
	if flat.Samples > 0 {
		total, sampled = flat.Samples, p.samples
	}
	if total == 0 || sampled == 0 {
		return nil, 0, nil
	}
	const many = 10
	chosen := append(most(p.routines, many), most(parts, many)...)
	slices.Sort(chosen)
	for _, r := range slices.Compact(chosen) {
		x := routineShare{s.Routines[r].Name, float64(p.routines[r]) / float64(sampled),
			float64(parts[r]) / float64(total)}
		list = append(list, x)
		worst = max(worst, 100*math.Abs(x.Perf-x.Estimated))
	}
	slices.SortStableFunc(list, func(a, b routineShare) int { return cmp.Compare(b.Perf, a.Perf) })
	return list, worst, nil
}

// places is where wpptrace's samples are, as shares of them, by the names that perf's have here;
// nil: it has none.
func places(s *wpp.Snapshot) (map[string]float64, error) {
	p, err := samples.Of(s)
	if p == nil || err != nil {
		return nil, err
	}
	where, total := map[string]float64{}, float64(p.Total())
	where["kernel"] = float64(p.Kernel) / total
	for _, f := range p.Files {
		where[filepath.Base(f.Path)] += float64(f.Samples) / total
	}
	for _, m := range p.JIT {
		where["no file"] += float64(m.Samples) / total
	}
	return where, nil
}

// most are the n keys of the largest values.
func most[N int | float64 | uint64](m map[int]N, n int) []int {
	var keys []int
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b int) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	return keys[:min(n, len(keys))]
}

// mapsOf reads those of a process that runs.
func mapsOf(pid int) ([]mapping, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMaps(f)
}
