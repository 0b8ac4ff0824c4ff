package record

import (
	"os"
	"testing"

	"wpptrace/internal/record/sample"
	"wpptrace/internal/testenv"
	"wpptrace/loader/image"
	"wpptrace/loader/target"
)

// TestNamesOfFilesThatAreNotTraced: of a file that is in no plan, routines have the names that it
// gives them, also when it could be opened early alone; without the file they have none.
func TestNamesOfFilesThatAreNotTraced(t *testing.T) {
	const path = "/bin/bash"
	if !testenv.Have(t, path) {
		t.Skip("there is no " + path)
	}
	im, err := image.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	offset := uint64(0)
	for _, s := range im.Symbols() {
		if s.Name == "xmalloc" {
			offset, _ = im.FileOffset(s.Addr)
		}
	}
	for _, open := range []bool{true, false} {
		var f *os.File
		if open {
			if f, err = os.Open(path); err != nil {
				t.Fatal(err)
			}
		}
		id := target.FileID{}
		s := &sampling{files: map[target.FileID]*sampledFile{id: newSampledFile(f, path)}}
		s.counts.Images = map[target.FileID]*sample.Image{
			id: {Name: path, Offsets: map[uint64]uint64{offset: 3, offset + 1: 4, 1 << 40: 5}}}
		s.counts.Kernel = 10
		p := s.profile(nil, nil)
		if len(p.Files) != 1 || p.Files[0].Samples != 12 || p.Kernel != 10 ||
			(p.Files[0].Names["xmalloc"] == 7) != open || len(p.Files[0].Names) > 1 {
			t.Errorf("open %v: %+v", open, p)
		}
		f.Close()
	}
}

// TestNotSampled: what is not sampled has no profile, and can be asked for all the same.
func TestNotSampled(t *testing.T) {
	var s *sampling
	s.pause()
	s.keep()
	s.take()
	s.resume()
	s.stop()
	s.close()
	if p := s.profile(nil, nil); p != nil {
		t.Errorf("%+v", p)
	}
}

// TestProfileIsACopy: a profile that was made stays what it is while more is counted.
func TestProfileIsACopy(t *testing.T) {
	one := sample.Counts{Kernel: 1, JIT: map[string]*sample.Unplaced{
		"[anon:v8]": {Samples: 1, Names: map[string]uint64{"f": 1}}}}
	s := &sampling{}
	s.counts.Add(one)
	p := s.profile(nil, nil)
	s.counts.Add(one)
	if p.Total() != 2 || p.JIT[0].Names["f"] != 1 {
		t.Errorf("%+v", p)
	}
}
