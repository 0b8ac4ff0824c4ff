package recovery_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"wpptrace/loader/cfg"
	"wpptrace/loader/cfg/recovery"
	"wpptrace/loader/image"
)

// TestPart: a routine of a program that is recovered in part has the graph that it has in the
// whole, or is left out, whatever else is recovered.
func TestPart(t *testing.T) {
	files := []string{"/bin/bash", "/usr/bin/python3", "/usr/bin/redis-server",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6"}
	if list := os.Getenv("WPPTRACE_PART"); list != "" { // of others, as large ones
		files, _ = filepath.Glob(list)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil {
				t.Skip(err)
			}
			whole := partOf(t, file, nil)
			for i, share := range []float64{0.003, 0.2} {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				chosen := map[string]bool{}
				for _, routine := range whole.Routines {
					if r.Float64() < share {
						chosen[fmt.Sprint(routine.Ranges)] = true
					}
				}
				comparePart(t, whole, partOf(t, file, chosen), chosen)
			}
		})
	}
}

func partOf(t *testing.T, file string, chosen map[string]bool) *cfg.Program {
	im, err := image.OpenFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	if chosen == nil {
		p, err := recovery.Recover(im)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p, err := recovery.Part(im, func(c recovery.Candidate) bool {
		return chosen[fmt.Sprint(c.Ranges)]
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func comparePart(t *testing.T, whole, part *cfg.Program, chosen map[string]bool) {
	t.Helper()
	same, left := 0, []string(nil)
	for _, w := range whole.Routines {
		if !chosen[fmt.Sprint(w.Ranges)] || w.LeftOut == "no unwind information" {
			continue
		}
		p := part.At(w.Addr)
		switch {
		case p == nil:
			t.Errorf("%s is not recovered", w.Name)
		case p.LeftOut == "" && w.LeftOut != "":
			t.Errorf("%s is left out of the whole: %s", w.Name, w.LeftOut)
		case p.LeftOut != "" && w.LeftOut == "":
			left = append(left, w.Name+": "+p.LeftOut)
		case p.LeftOut != "":
		default:
			if why := differs(p, w); why != "" {
				t.Errorf("%s differs: %s", w.Name, why)
			}
			if !part.ReturnsTwice(w.Addr) && whole.ReturnsTwice(w.Addr) {
				t.Errorf("%s returns twice", w.Name)
			}
			for b := range w.Blocks {
				if whole.CallReturnsTwice(w, b) && !part.CallReturnsTwice(p, b) {
					t.Errorf("%s: the call at %x returns twice", w.Name, w.Blocks[b].Hi)
				}
			}
			same++
		}
	}
	if 20*len(left) > same+20 {
		t.Errorf("%d of %d are left out of the part alone", len(left), len(chosen))
	}
	t.Logf("%d of %d recovered; %d selected, %d the same, left out of the part alone: %q",
		len(part.Routines), len(whole.Routines), len(chosen), same, left)
}

// differs says in what two graphs of a routine differ.
func differs(p, w *cfg.Routine) string {
	if len(p.Blocks) != len(w.Blocks) {
		return fmt.Sprintf("%d blocks, %d in the whole", len(p.Blocks), len(w.Blocks))
	}
	for b := range w.Blocks {
		x, y := p.Blocks[b], w.Blocks[b]
		if !reflect.DeepEqual(x, y) {
			x.Insns, y.Insns = nil, nil
			return fmt.Sprintf("block %d:\n%+v\n%+v", b, x, y)
		}
	}
	if p.Name != w.Name || p.Symbol != w.Symbol || p.Entry != w.Entry || p.Faulty != w.Faulty ||
		!reflect.DeepEqual([]any{p.Others, p.Pads, p.Ranges},
			[]any{w.Others, w.Pads, w.Ranges}) {
		return fmt.Sprintf("%+v", p.Others)
	}
	for b := range w.Blocks {
		for i := range w.Blocks[b].Insns {
			if at := w.Blocks[b].Insns[i].Addr; p.CFA(at) != w.CFA(at) {
				return fmt.Sprintf("row at %x", at)
			}
		}
	}
	return ""
}
