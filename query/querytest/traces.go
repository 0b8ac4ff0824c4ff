package querytest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wpptrace/compress/ops"
	"wpptrace/compress/sequitur"
	"wpptrace/compress/wpp"
)

// A Trace is a snapshot, and the same with grammars that compress nothing: one rule that is the
// stream. What a query costs on the second is what it costs on the expansion.
type Trace struct {
	Name         string
	Packed, Flat *wpp.Snapshot
}

// Traces are one that is made up and, of the files that WPP_TRACES lists with colons between, those
// of real programs: symbols of 32 bits, little-endian. They are read once.
var Traces = sync.OnceValue(func() []Trace {
	list := []Trace{NewTrace("made-up", program(1<<20))}
	for _, file := range filepath.SplitList(os.Getenv("WPP_TRACES")) {
		data, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		stream := make([]uint32, len(data)/4)
		for i := range stream {
			stream[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		list = append(list, NewTrace(filepath.Base(file), stream))
	}
	return list
})

// program makes up the trace of a program with nested loops whose bodies branch, most often the
// same way.
func program(length int) []uint32 {
	random := rand.New(rand.NewPCG(1, 2))
	var stream []uint32
	for len(stream) < length {
		routine := uint32(random.IntN(60)) * 8
		stream = append(stream, routine)
		for range random.IntN(200) {
			stream = append(stream, routine+1)
			switch random.IntN(100) {
			case 0:
				stream = append(stream, routine+2, routine+3)
			case 1:
				stream = append(stream, routine+4)
			default:
				stream = append(stream, routine+5, routine+6)
			}
		}
		stream = append(stream, routine+7)
	}
	return stream[:length]
}

// NewTrace makes snapshots of a stream: symbol n is path n%8 of routine n/8, path 0 its entry and
// path 7 its return.
func NewTrace(name string, stream []uint32) Trace {
	t := Trace{name, PathsOfEight(slices.Max(stream)), PathsOfEight(slices.Max(stream))}
	g := sequitur.NewFolding() // as wpptrace does
	g.AppendAll(stream)
	t.Packed.Threads = []wpp.Thread{{TID: 1, Grammar: wpp.FromSequitur(g)}}
	flat, err := wpp.NewGrammar([][]uint32{stream})
	if err != nil {
		panic(err)
	}
	t.Flat.Threads = []wpp.Thread{{TID: 1, Grammar: flat}}
	return t
}

func PathsOfEight(last uint32) *wpp.Snapshot {
	s := &wpp.Snapshot{Images: []wpp.Image{{Name: "/usr/bin/eights", BuildID: []byte{8}}}}
	for sym := range last + 1 {
		if sym%8 == 0 {
			entry := 0x1000 * uint64(sym/8+1)
			r := wpp.Routine{Name: fmt.Sprint("r", sym/8), Entry: entry,
				Ranges: []wpp.Range{{Lo: entry, Hi: entry + 64}}, Paths: 8}
			for i := range 8 {
				r.Blocks = append(r.Blocks,
					wpp.Block{Addr: entry + uint64(i), Lengths: slices.Repeat([]byte{1}, 3+i)})
			}
			s.Routines = append(s.Routines, r)
		}
		p := wpp.Symbol{Routine: int(sym / 8), Path: uint64(sym % 8), Start: ops.StartLoop,
			End: ops.EndLoop, Blocks: []int{int(sym % 8)}}
		switch p.Path {
		case 0:
			p.Start = ops.StartEntry
		case 7:
			p.End = ops.EndReturn
		}
		s.Symbols = append(s.Symbols, p)
	}
	return s
}

// Compare times a query on the grammar and on the expansion of each trace, and fails where the
// answers differ or the grammar is not so many times as fast. On what is made up it only says how
// many times. The expansion of a long trace takes a query a minute or more.
func Compare[T comparable](b *testing.B, times float64, ask func(s *wpp.Snapshot) T,
	onExpansion func(s *wpp.Snapshot) T) {
	for i, tr := range Traces() {
		b.Run(tr.Name, func(b *testing.B) {
			slow, want := timed(func() T { return onExpansion(tr.Packed) })
			var got T
			quick := time.Duration(1<<63 - 1)
			for b.Loop() {
				took, answer := timed(func() T { return ask(tr.Packed) })
				quick, got = min(quick, took), answer
				if slow < time.Second { // time enough for both in turns
					took, _ = timed(func() T { return onExpansion(tr.Packed) })
					slow = min(slow, took)
				}
			}
			if got != want {
				b.Errorf("answer %v, on the expansion %v", got, want)
			}
			ratio := slow.Seconds() / quick.Seconds()
			b.ReportMetric(quick.Seconds()*1000, "grammar-ms")
			b.ReportMetric(slow.Seconds()*1000, "expansion-ms")
			b.ReportMetric(ratio, "times-as-fast")
			if i > 0 && ratio < times {
				b.Errorf("%v, %.1f times as fast as on the expansion, want %.0f", quick, ratio,
					times)
			}
		})
	}
}

// timed measures CPU time: the machine may have other things to do.
func timed[T any](ask func() T) (time.Duration, T) {
	begin := cpuTime()
	answer := ask()
	return cpuTime() - begin, answer
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// FlatOf is the snapshot of a trace that compresses nothing.
func FlatOf(s *wpp.Snapshot) *wpp.Snapshot {
	for _, tr := range Traces() {
		if tr.Packed == s {
			return tr.Flat
		}
	}
	panic("no such trace")
}

// Beginnings are streams of which tests take the first symbols: some that are made up, and those of
// the files that WPP_TRACES lists.
func Beginnings(t *testing.T, most int) map[string][]uint32 {
	random := rand.New(rand.NewPCG(7, 8))
	runs, noise := make([]uint32, most), make([]uint32, most)
	for i := range runs {
		if noise[i] = random.Uint32N(12); i > 0 && random.IntN(20) > 0 {
			runs[i] = runs[i-1]
		} else {
			runs[i] = noise[i]
		}
	}
	all := map[string][]uint32{"program": program(most), "runs": runs, "noise": noise}
	for _, file := range filepath.SplitList(os.Getenv("WPP_TRACES")) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(file)] = SymbolsOf(raw, most)
	}
	return all
}

// Spelled is a snapshot of a grammar in which three symbols are the paths of routines a, b and c,
// and all others are of routine x.
func Spelled(g *wpp.Grammar, last uint32, abc []uint32) *wpp.Snapshot {
	s := Letters("", "abcx")
	s.Symbols = make([]wpp.Symbol, last+1)
	for sym := range s.Symbols {
		routine := slices.Index(abc, uint32(sym))
		if routine < 0 {
			routine = 3
		}
		s.Symbols[sym] = wpp.Symbol{Routine: routine, Path: uint64(sym), Blocks: []int{0}}
	}
	s.Threads = s.Threads[:1]
	s.Threads[0].Grammar = g
	return s
}

func SymbolsOf(raw []byte, most int) []uint32 {
	stream := make([]uint32, min(most, len(raw)/4))
	for i := range stream {
		stream[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return stream
}
