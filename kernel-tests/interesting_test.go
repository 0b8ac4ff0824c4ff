package kerneltests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"wpptrace/compress/wpp/store"
	"wpptrace/internal/testenv"
	"wpptrace/kernel-tests/exact"
	"wpptrace/kernel-tests/zoo"
	"wpptrace/query"
)

// Interesting paths that are counted in the kernel have the counts of a whole program path of a run
// that is alike, and so have the others of each of their routines together: all that ran, and the
// hottest. A path that a signal interrupts is two parts in the recording, and counts, even if it is
// never gone on with: there are so many more at most. Those of the zoo, with threads, signals,
// exceptions and longjmp, but for those which a timer interrupts anywhere.
func TestInterestingOfTheZoo(t *testing.T) {
	met := map[string]bool{} // by program: one flavour of each
	cases := slices.DeleteFunc(zooCases(), func(c zoo.Case) bool {
		again := met[c.Program.Name]
		met[c.Program.Name] = true
		return !matrix() && (again || c.Program.Tags&(zoo.Long|zoo.Longest) != 0) ||
			c.Program.Tags&zoo.Timer != 0
	})
	builder, cases := programs(t, cases)
	for _, c := range cases {
		t.Run(c.Program.Name+"/"+c.Flavour.String(), func(t *testing.T) {
			t.Parallel()
			path, err := builder.Build(context.Background(), c.Program, c.Flavour)
			if errors.Is(err, zoo.ErrNotBuildable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			target := targetOf(c, path, t.TempDir())
			target.FixedAddresses = true
			interestingAgree(t, target, nil)
		})
	}
}

// So do those of programs as the distribution ships them.
func TestInterestingOfRealPrograms(t *testing.T) {
	for _, real := range zoo.Reals() {
		t.Run(real.Name, func(t *testing.T) {
			path, err := real.Path()
			if err != nil {
				testenv.Missing(t, err)
			}
			interestingAgree(t, exact.Target{Path: path, Args: real.Args,
				Env: append(zoo.Env(), "PYTHONHASHSEED=0"), Dir: t.TempDir(),
				Stdin: []byte(real.Stdin), FixedAddresses: true}, aside[real.Name])
		})
	}
}

// A counted is a path of the executable.
type counted struct {
	entry, path uint64
}

func interestingAgree(t *testing.T, target exact.Target, aside []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	whole := filepath.Join(t.TempDir(), "whole.wpp")
	target.Libraries = nil
	_, err := tracer.RecordTo(ctx, whole, target)
	if errors.Is(err, exact.ErrRefused) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	ran, names := ranOf(t, whole)
	for _, flags := range [][]string{{"--others", "count"},
		{"--others", "count", "--hot", fmt.Sprint(max(len(ran)/10, 1))},
		{"--others", "ignore", "--hot", fmt.Sprint(max(len(ran)/4, 1))}} {
		r, err := tracer.CountSome(ctx, whole, target, flags...)
		if errors.Is(err, exact.ErrRefused) {
			t.Log(err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		others := map[uint64]uint64{}
		for at, n := range ran {
			others[at.entry] += n
		}
		differ := 0
		check := func(what string, entry, want, got uint64) {
			if want <= got && got <= want+r.Amid || slices.Contains(aside, names[entry]) {
				return
			}
			if differ++; differ < 5 {
				t.Errorf("%v: %s of %s at %x: %d, counted %d", flags, what, names[entry], entry, want,
					got)
			}
		}
		for _, p := range r.Paths {
			at := counted{entry: p.Entry, path: p.Path}
			others[p.Entry] -= ran[at]
			check(fmt.Sprint("path ", p.Path), p.Entry, ran[at], p.Count)
		}
		for _, o := range r.Others {
			check("others", o.Entry, others[o.Entry], o.Count)
		}
		if differ > 0 || r.UnknownHits > 0 || r.LostHits > 0 {
			t.Errorf("%v: %d of %d paths and %d routines differ; %d hits not known, %d lost", flags,
				differ, len(r.Paths), len(r.Others), r.UnknownHits, r.LostHits)
		}
		t.Logf("%v: %d paths, %d not told apart, others of %d routines, by %d probes", flags,
			len(r.Paths), r.NotTold, len(r.Others), r.Probes)
	}
}

// ranOf reads how often each path of the executable ran, and the names of routines by entry.
func ranOf(t *testing.T, file string) (map[counted]uint64, map[uint64]string) {
	t.Helper()
	s, err := store.ReadFile(file, query.Sections()...)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := query.NewFrequencies(s)
	if err != nil {
		t.Fatal(err)
	}
	ran, names := map[counted]uint64{}, map[uint64]string{}
	for i := range s.Symbols {
		n, p := counts.Symbol(uint32(i)), &s.Symbols[i]
		if n == 0 || p.IsMark {
			continue
		}
		r := &s.Routines[p.Routine]
		if r.Image == 0 && p.Path < r.Paths { // no part of one
			ran[counted{entry: r.Entry, path: p.Path}] += n
			names[r.Entry] = r.Name
		}
	}
	return ran, names
}
