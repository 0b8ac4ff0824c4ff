package recovery_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wpptrace/internal/testenv"
	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// TestRealPrograms checks what share of the routines of programs, as a distribution ships them, has
// an exact graph.
func TestRealPrograms(t *testing.T) {
	for _, test := range []struct {
		path  string
		share float64
	}{
		{"/usr/bin/bash", 0.99},
		{"/usr/bin/python3", 0.985},
		{"/usr/bin/sqlite3", 0.99},
		{"/usr/bin/gzip", 0.985},
		{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 0.99},
	} {
		t.Run(test.path, func(t *testing.T) {
			if testing.Short() && test.path != "/usr/bin/bash" {
				t.Skip("short: bash alone")
			}
			if _, err := os.Stat(test.path); err != nil {
				testenv.Missing(t, err)
			}
			im, err := image.OpenFile(test.path)
			if err != nil {
				t.Fatal(err)
			}
			defer im.Close()
			start := time.Now()
			p, err := recovery.Recover(im)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			exact := 0
			for _, r := range p.Routines {
				if r.LeftOut == "" {
					exact++
					checkRoutine(t, p, r)
				}
			}
			share := float64(exact) / float64(len(p.Routines))
			t.Logf("%d routines, %.2f %% exact, %v", len(p.Routines), 100*share,
				took.Round(time.Millisecond))
			if share < test.share {
				t.Errorf("%.4f of the routines are exact, want %.4f", share, test.share)
			}
		})
	}
}

// checkRoutine checks what holds for every exact routine.
func checkRoutine(t *testing.T, p *cfg.Program, r *cfg.Routine) {
	t.Helper()
	if p.At(r.Addr) != r || p.Routines[r.ID] != r || r.Blocks[r.Entry].Lo != r.Addr {
		t.Errorf("%s: is not at its entry", r.Name)
	}
	for b := range r.Blocks {
		bl := &r.Blocks[b]
		// An instruction with a lock prefix and the same without it overlap.
		if b > 0 && (bl.Lo <= r.Blocks[b-1].Lo || bl.Lo != r.Blocks[b-1].Lo+1 &&
			bl.Lo < r.Blocks[b-1].Hi) {
			t.Errorf("%s: block %d overlaps the one before", r.Name, b)
		}
		at := bl.Lo
		for _, q := range bl.Insns {
			if q.Addr != at {
				t.Errorf("%s: block %d has a hole at %x", r.Name, b, at)
			}
			at += uint64(q.Len)
		}
		if at != bl.Hi || p.Containing(bl.Lo) != r || p.Containing(bl.Hi-1) != r {
			t.Errorf("%s: block %d does not end at %x, or in its routine", r.Name, b, bl.Hi)
		}
		checkSuccessors(t, r, b)
	}
}

func checkSuccessors(t *testing.T, r *cfg.Routine, b int) {
	t.Helper()
	bl := &r.Blocks[b]
	want := map[cfg.End]int{cfg.Fall: 1, cfg.Jcc: 2, cfg.Jmp: 1, cfg.Call: 1,
		cfg.CallInd: 1}[bl.End]
	if bl.End == cfg.Table {
		want = max(1, len(bl.Succ))
		for _, to := range bl.Table.Targets {
			if to < 0 || to >= len(r.Blocks) {
				t.Errorf("%s: the table of block %d leads to block %d", r.Name, b, to)
			}
		}
	}
	if len(bl.Succ) != want || bl.End == cfg.Unresolved {
		t.Errorf("%s: block %d ends by %d and has successors %v", r.Name, b, bl.End, bl.Succ)
	}
	for i, to := range bl.Succ {
		out := to == -1 && bl.End == cfg.Jcc && i == 0
		if !out && (to < 0 || to >= len(r.Blocks)) {
			t.Errorf("%s: block %d has successor %d of %d", r.Name, b, to, len(r.Blocks))
		}
	}
}

// TestDeterministic checks that the same image yields the same program.
func TestDeterministic(t *testing.T) {
	path := compileFile(t, "switches/all.c", "-O2")
	a, b := recoverFile(t, path), recoverFile(t, path)
	if diff := cmp.Diff(a.Routines, b.Routines, cmpopts.IgnoreUnexported(cfg.Routine{}),
		cmpopts.IgnoreFields(cfg.Block{}, "Insns")); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkRecover measures a program of 2.6 MB of code.
func BenchmarkRecover(b *testing.B) {
	im, err := image.OpenFile("/usr/bin/python3")
	if err != nil {
		testenv.Missing(b, err)
	}
	defer im.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := recovery.Recover(im); err != nil {
			b.Fatal(err)
		}
	}
}
