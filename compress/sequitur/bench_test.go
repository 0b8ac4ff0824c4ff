package sequitur

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// programStream is what a program of nested loops, calls and branches makes: n symbols at least.
func programStream(seed uint64, n int) []uint32 {
	random := rand.New(rand.NewPCG(seed, 3))
	type routine struct{ body []uint32 }
	routines := make([]routine, 12+random.IntN(40))
	for i := range routines {
		for range 2 + random.IntN(9) {
			routines[i].body = append(routines[i].body, random.Uint32N(1<<10))
		}
	}
	var stream []uint32
	var call func(i, depth int)
	call = func(i, depth int) {
		for _, v := range routines[i].body {
			if v%3 == 0 && depth > 0 && len(stream) < n {
				for range 1 + int(v/3%7)*random.IntN(4)/2 {
					call((i+1+int(v)%5)%len(routines), depth-1)
				}
				continue
			}
			stream = append(stream, v)
			if v%17 == 1 {
				stream = append(stream, 1<<10+random.Uint32N(3))
			}
		}
	}
	for len(stream) < n {
		call(random.IntN(len(routines)), 6)
	}
	return stream
}

// traces are the streams to measure with: generated, or those of the files of little-endian uint32
// that WPP_TRACES lists, parted by colons.
func traces(b *testing.B) map[string][]uint32 {
	list := os.Getenv("WPP_TRACES")
	if list == "" {
		random := rand.New(rand.NewPCG(1, 2))
		return map[string][]uint32{
			"program": programStream(1, 1<<20), "phrases": phrases(random, 1<<20),
			"random": randomStream(random, 1<<18),
		}
	}
	streams := map[string][]uint32{}
	for _, path := range strings.Split(list, ":") {
		data, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		stream := make([]uint32, len(data)/4)
		for i := range stream {
			stream[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		streams[filepath.Base(path)] = stream
	}
	return streams
}

// randomStream has no structure at all: the worst case.
func randomStream(random *rand.Rand, n int) []uint32 {
	stream := make([]uint32, n)
	for i := range stream {
		stream[i] = random.Uint32N(1 << 12)
	}
	return stream
}

// BenchmarkAppend measures symbols a second beside a baseline, in turn: the plain SEQUITUR of the
// tests, or the command that WPP_BASELINE names, which is given a trace's file and prints
// Msym/s=NUMBER.
func BenchmarkAppend(b *testing.B) {
	for name, stream := range traces(b) {
		b.Run(name, func(b *testing.B) {
			var ours, theirs []float64
			var g *Grammar
			for b.Loop() {
				runtime.GC()
				began := time.Now()
				g = NewFolding()
				g.AppendAll(stream)
				ours = append(ours, rate(stream, began))
				theirs = append(theirs, baseline(b, name, stream))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(ours), "Msymbols/s")
			b.ReportMetric(median(ours)/median(theirs), "x-baseline")
			b.ReportMetric(float64(g.Bytes())/float64(g.Symbols()), "B/symbol")
			b.ReportMetric(float64(g.Symbols()), "symbols")
		})
	}
}

func rate(stream []uint32, began time.Time) float64 {
	return float64(len(stream)) / time.Since(began).Seconds() / 1e6
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

var rateOfBaseline = regexp.MustCompile(`Msym/s=([0-9.]+)`)

// baseline returns the millions of symbols a second of the baseline.
func baseline(b *testing.B, name string, stream []uint32) float64 {
	command := strings.Fields(os.Getenv("WPP_BASELINE"))
	if len(command) == 0 {
		began := time.Now()
		p := newPlain()
		for _, v := range stream {
			p.append(v)
		}
		return rate(stream, began)
	}
	for _, path := range strings.Split(os.Getenv("WPP_TRACES"), ":") {
		if filepath.Base(path) != name {
			continue
		}
		out, err := exec.Command(command[0], append(command[1:], path)...).CombinedOutput()
		found := rateOfBaseline.FindSubmatch(out)
		if err != nil || found == nil {
			b.Fatalf("%v: %v\n%s", command, err, out)
		}
		rate, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		return rate
	}
	b.Fatal("WPP_BASELINE needs WPP_TRACES")
	return 0
}
