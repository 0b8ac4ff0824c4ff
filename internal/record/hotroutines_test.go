package record

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"wpptrace/internal/record/overhead"
	"wpptrace/internal/record/sample"
	"wpptrace/internal/traced"
	"wpptrace/loader/target"
)

// TestBudgetIsDivided: images that are to be traced divide what the budget allows by their samples.
// What one has not taken the next may have.
func TestBudgetIsDivided(t *testing.T) {
	var files []*os.File
	var ids []target.FileID
	for _, name := range []string{"main", "libmain.so.1", "libother.so"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		id, err := target.IDOf(f)
		if err != nil {
			t.Fatal(err)
		}
		files, ids = append(files, f), append(ids, id)
	}
	exe, library := ids[0], ids[1]
	image := func(name string, samples uint64) *sample.Image {
		return &sample.Image{Name: name, Offsets: map[uint64]uint64{1 << 12: samples}}
	}
	h := newHotRoutines(&Options{Overhead: 0.05, MaxStall: 20 * time.Millisecond,
		Selection: traced.Selection{Libraries: []string{"libmain*"}}}, &sampling{}, nil)
	counts := &h.sampling.counts
	counts.CPUTime, counts.Wall = time.Second, time.Second
	counts.Images = map[target.FileID]*sample.Image{exe: image("main", 100),
		library: image("/lib/libmain.so.1", 300), ids[2]: image("/lib/libother.so", 1000)}
	all := float64(overhead.MostHot(0.05, h.options.limits(), 1))
	if b := h.bounds(files[0]); b != (traced.Bounds{Blocks: mostBlocks / 4, Hot: all / 4}) {
		t.Errorf("one with a quarter of the samples may have %+v", b)
	}
	h.chosen[library], h.hot = true, all/2
	if b := h.bounds(files[0]); b != (traced.Bounds{Blocks: mostBlocks, Hot: all / 2}) {
		t.Errorf("the last one may have %+v", b)
	}
}
