package values

import (
	"encoding/binary"

	"wpptrace/loader/plan"
)

// Read gives what the hit has read: see loads.Process.
func (r *replay) Read(_ uint64, to []byte) bool {
	failed, words := r.failed>>r.n&1 != 0, (len(to)+7)/8
	r.n++
	if len(r.words) < words {
		return false
	}
	read := r.words[:words] // zeroes of one that failed
	r.words = r.words[words:]
	if failed {
		return false
	}
	for _, v := range read {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v)
		to = to[copy(to, word[:]):]
	}
	return true
}

// Continuation: see loads.Process.
func (r *replay) Continuation(returnAddress uint64) (step uint32, ok bool) {
	rec := r.recorder
	for i := range rec.plan.Base.Parts {
		part := &rec.plan.Base.Parts[i]
		step, ok = rec.plan.After[returnAddress-rec.code.Bias(i)+part.Offset]
		if ok {
			return step, ok
		}
	}
	return 0, false
}

// Bias: see loads.Process.
func (r *replay) Bias(look int) uint64 {
	p := r.recorder.plan
	routine := 0
	if n := len(p.Base.Sites); look < n {
		routine = p.Base.Sites[look].Routine
	} else {
		routine = p.Extra[look-n].Routine
	}
	if code := r.recorder.code.Routine(routine); code != nil {
		return r.recorder.code.Bias(code.Image)
	}
	return 0
}

// A readOnly is the data of images that nobody writes.
type readOnly struct {
	ranges []fixed
	images int // of the plan that are in ranges
}

// A fixed is some of it, by link-time addresses.
type fixed struct {
	image int
	lo    uint64
	data  []byte
}

// grow takes in the images that have been added to the plan.
func (f *readOnly) grow(parts []plan.Part) {
	for ; f.images < len(parts); f.images++ {
		for _, s := range parts[f.images].Program.Image.Sections {
			if !s.Writable && s.Addr > 0 && len(s.Data) > 0 {
				f.ranges = append(f.ranges, fixed{f.images, s.Addr, s.Data})
			}
		}
	}
}

// read reads from there, if all of it is.
func (f *readOnly) read(r *Recorder, addr uint64, to []byte) bool {
	f.grow(r.plan.Base.Parts)
	for i := range f.ranges {
		x := &f.ranges[i]
		at := addr - r.code.Bias(x.image) - x.lo
		if at < uint64(len(x.data)) && uint64(len(to)) <= uint64(len(x.data))-at {
			copy(to, x.data[at:])
			return true
		}
	}
	return false
}
